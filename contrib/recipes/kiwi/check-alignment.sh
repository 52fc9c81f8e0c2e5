#!/bin/bash
# KIWI runs this with the name of the disk, when everything is in it.
exec trueline check --strict --for sd-4m "$1"
