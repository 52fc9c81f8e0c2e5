# A disk image of one partition, checked before Packer is done. `null` stands for the builder of
# your image, such as qemu; the post-processor is the same.
#
#   packer build -var image=disk.img .
variable "image" {
  type = string
}

# A profile of trueline help profiles: the drive that the image is for.
variable "drive" {
  type    = string
  default = "ssd-16k"
}

variable "start" {
  type    = string
  default = "1MiB"
}

source "null" "disk" {
  communicator = "none"
}

build {
  sources = ["source.null.disk"]

  provisioner "shell-local" {
    inline = [
      "truncate -s 64M '${var.image}'",
      "echo 'start=${var.start}, type=L' | sfdisk -q --label gpt '${var.image}'",
    ]
  }

  # The build fails if this does.
  post-processor "shell-local" {
    inline = ["trueline check --strict --for '${var.drive}' '${var.image}'"]
  }
}
