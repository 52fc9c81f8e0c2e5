# LUKS2 with integrity, opened by dm-crypt on dm-integrity: sectors of 512 bytes and of 4096, tags of HMAC-SHA256.
# disks: 12M 24M
printf 'sec\nret\n' >"$results/key"
for disk; do
    case $disk in "$1") sector=512 ;; *) sector=4096 ;; esac
    cryptsetup -q luksFormat --key-file "$results/key" --type luks2 --luks2-metadata-size 16k --luks2-keyslots-size 640k \
        --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --cipher aes-xts-plain64 --key-size 512 --sector-size "$sector" \
        --integrity hmac-sha256 --integrity-no-wipe "$disk"
    cryptsetup open --key-file "$results/key" "$disk" "crypt-${disk##*/}"
    fill "/dev/mapper/crypt-${disk##*/}"
done
