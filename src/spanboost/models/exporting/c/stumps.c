/* Stumps: the feature with the largest score predicts U z, plus V if there are intercepts. */
struct stumps_R {
    int64_t features;
    const int64_t *feature; /* sorted */
    const real *scale;
    int parts, copies;
    const real *U; /* [feature][part][output][copy] */
    const double *score; /* [feature][copy] */
};

static void predict_stumps_R(const struct stumps_R *s, const struct row *row, int64_t mask,
                             double *best, real *h)
{
    int64_t at = 0, feature;
    int copies = s->copies;
    real x;
    for (int i = 0; i < copies; i++)
        best[i] = -INFINITY;
    for (int i = 0; i < OUTPUTS * copies; i++)
        h[i] = 0;
    while (next_feature_R(row, mask, 0, &at, &feature, &x)) {
        int64_t f = find_key(s->feature, s->features, feature);
        real z = f < 0 ? 0 : normalise_R(x, s->scale[f]);
        for (int i = 0; i < copies; i++) {
            double score = f < 0 ? 0 : s->score[f * copies + i];
            if (!(score > best[i]))
                continue;
            best[i] = score;
            for (int k = 0; k < OUTPUTS; k++) {
                const real *U = s->U + f * s->parts * OUTPUTS * copies;
                real value = f < 0 ? 0 : U[k * copies + i] * z;
                if (f >= 0 && s->parts == 2)
                    value += U[(OUTPUTS + k) * copies + i];
                h[k * copies + i] = value;
            }
        }
    }
}
