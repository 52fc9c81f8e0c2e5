# An image is uploaded only if it is aligned on the drive that it is for. Terraform 1.2 or later.
variable "image" {
  type = string
}

data "external" "alignment" {
  program = ["sh", "${path.module}/trueline-external.sh"]
  query = {
    target = var.image
    for    = "ssd-16k"
  }

  lifecycle {
    postcondition {
      condition     = self.result.verdict == "aligned"
      error_message = "${var.image} is ${self.result.verdict}: ${self.result.message}"
    }
  }
}

# What uploads the image takes its name from here, and so depends on the check.
output "image" {
  value      = var.image
  depends_on = [data.external.alignment]
}
