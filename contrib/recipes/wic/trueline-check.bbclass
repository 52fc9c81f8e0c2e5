# do_image_wic fails if the image that it made is misaligned. In local.conf, with trueline on the path
# of the build host:
#
#   IMAGE_CLASSES += "trueline-check"
#   HOSTTOOLS += "trueline"
TRUELINE_FOR ?= "sd-4m"

trueline_check_wic() {
    trueline check --strict --for ${TRUELINE_FOR} ${IMGDEPLOYDIR}/${IMAGE_NAME}.wic ||
        bbfatal "${IMAGE_NAME}.wic is not aligned"
}
do_image_wic[postfuncs] += "trueline_check_wic"
