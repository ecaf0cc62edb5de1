/* Return tanh(a / 2), by the series that the model learned with. */
static real sigmoid_R(real a)
{
    real v = a < 0 ? -a : a;
    real y = (v < 64 ? v : 64) * (real)0.0625;
    real e = 1 + y * (real)0.25;
    e = 1 + y * (real)(1.0 / 3) * e;
    e = 1 + y * (real)0.5 * e;
    e = 1 + y * e;
    e *= e;
    e *= e;
    e *= e;
    e *= e;
    real s = (e - 1) / (e + 1);
    return a > 0 ? s : -s;
}

/* V[unit][output][copy], the constant first; `units` has room for the sums of all units. */
static void predict_network_R(const struct sums_R *s, const real *V, int copies,
                              const struct row *row, int64_t mask, real *units, real *h)
{
    int hidden = s->lanes / copies;
    sum_terms_R(s, row, mask, units);
    for (int i = 0; i < s->lanes; i++)
        units[i] = sigmoid_R(units[i]);
    for (int k = 0; k < OUTPUTS; k++)
        for (int i = 0; i < copies; i++) {
            real sum = 0;
            sum += V[k * copies + i];
            for (int j = 0; j < hidden; j++)
                sum += V[((j + 1) * OUTPUTS + k) * copies + i] * units[j * copies + i];
            h[k * copies + i] = sum;
        }
}
