/* zones DEVICE: reads commands for a zoned disk, a line each, sends them one after another, and prints each line with the
 * sense key and the additional sense code of its answer in hexadecimal, 0/00/00 for none.
 *
 *   r LBA BLOCKS    READ (16)
 *   w LBA BLOCKS    WRITE (16), of zeros
 *   z LBA BLOCKS    RESET WRITE POINTER of the zone that begins at LBA; of all zones if BLOCKS is 0
 *
 * Blocks are of 512 bytes.
 */
#include <fcntl.h>
#include <scsi/sg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

static void big_endian(unsigned char *at, unsigned long value, int bytes)
{
    while (bytes-- > 0) {
        at[bytes] = value & 0xff;
        value >>= 8;
    }
}

int main(int argc, char **argv)
{
    int device = argc == 2 ? open(argv[1], O_RDWR) : -1;
    char op;
    unsigned long lba, blocks;

    if (device < 0) {
        perror("zones");
        return 1;
    }
    while (scanf(" %c %lu %lu", &op, &lba, &blocks) == 3) {
        unsigned char command[16] = { 0 }, sense[64] = { 0 };
        size_t bytes = op == 'z' ? 0 : blocks * 512;
        void *data = calloc(1, bytes ? bytes : 1);
        struct sg_io_hdr io = {
            .interface_id = 'S',
            .cmdp = command,
            .cmd_len = sizeof command,
            .sbp = sense,
            .mx_sb_len = sizeof sense,
            .dxferp = data,
            .dxfer_len = bytes,
            .dxfer_direction = op == 'z' ? SG_DXFER_NONE : op == 'w' ? SG_DXFER_TO_DEV : SG_DXFER_FROM_DEV,
            .timeout = 20000,
        };

        command[0] = op == 'z' ? 0x94 : op == 'w' ? 0x8a : 0x88;
        big_endian(command + 2, blocks == 0 ? 0 : lba, 8);
        if (op == 'z') {
            command[1] = 0x04;
            command[14] = blocks == 0;
        } else {
            big_endian(command + 10, blocks, 4);
        }
        if (!data || ioctl(device, SG_IO, &io) < 0) {
            perror("SG_IO");
            return 1;
        }
        /* Fixed format (70h, 71h) and descriptor format (72h, 73h): SPC, sense data. */
        if (io.sb_len_wr == 0 || (sense[0] & 0x70) != 0x70)
            printf("%c %lu %lu 0/00/00\n", op, lba, blocks);
        else if ((sense[0] & 0x7f) >= 0x72)
            printf("%c %lu %lu %x/%02x/%02x\n", op, lba, blocks, sense[1] & 0xf, sense[2], sense[3]);
        else
            printf("%c %lu %lu %x/%02x/%02x\n", op, lba, blocks, sense[2] & 0xf, sense[12], sense[13]);
        free(data);
    }
    return 0;
}
