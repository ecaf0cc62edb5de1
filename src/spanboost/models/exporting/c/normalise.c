/* Return x / scale, clipped to [-1, 1]. */
static real normalise_R(real x, real scale)
{
    return clip_R(x, -scale, scale) / scale;
}
