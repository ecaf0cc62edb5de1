static int64_t crc32_of(const char *text)
{
    uint32_t crc = 0xFFFFFFFFu;
    for (; *text; text++) {
        crc ^= (unsigned char)*text;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (0xEDB88320u & (0u - (crc & 1u)));
    }
    return (int64_t)(crc ^ 0xFFFFFFFFu);
}
