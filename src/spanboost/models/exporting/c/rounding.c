/* Return x as the nearest float. GCC 12 leaves out casts to float and back when it vectorizes. */
static double round_to_float(double x)
{
    volatile float rounded = (float)x;
    return rounded;
}
