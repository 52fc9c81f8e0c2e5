# A journal with checksums of its own, tags of 20 bytes, a journal and areas of odd sizes.
# disks: 24M
integrity r "$1" "journal_sectors:1000 interleave_sectors:512 fix_padding \
    internal_hash:sha1 journal_mac:hmac(sha256):0123456789abcdef"
fill /dev/mapper/r
