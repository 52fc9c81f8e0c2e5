# LUKS1 with CBC, LUKS2 with sectors of 512 bytes and of 4096, opened by dm-crypt.
# disks: 8M 8M 8M 8M
printf 'sec\nret\n' >"$results/key"
encrypt() {
    cryptsetup -q luksFormat --key-file "$results/key" "$@"
}
second() {
    encrypt --type luks2 --luks2-metadata-size 16k --luks2-keyslots-size 512k --offset 4096 "$@"
}
cheap='--pbkdf argon2id --pbkdf-force-iterations 4 --pbkdf-memory 64 --pbkdf-parallel 2'
encrypt --type luks1 --pbkdf-force-iterations 1000 --cipher aes-cbc-essiv:sha256 --key-size 256 "$1"
encrypt --type luks1 --pbkdf-force-iterations 1000 --cipher aes-xts-plain64 --key-size 256 "$2"
# shellcheck disable=SC2086 # words
second $cheap --sector-size 512 --key-size 512 "$3"
# shellcheck disable=SC2086 # words
second $cheap --sector-size 4096 --key-size 512 "$4"
for disk; do
    cryptsetup open --key-file "$results/key" "$disk" "crypt-${disk##*/}"
    fill "/dev/mapper/crypt-${disk##*/}"
done
