/* Trees: nodes without a split link to themselves, so all trees can descend together. */
struct node_R {
    int32_t left; /* the left child; the right one follows it. A leaf is its own left child. */
    uint32_t cell; /* twice the cell of a split, plus 1 if it tests a category */
    real threshold;
};

struct trees_R {
    int trees, levels;
    const struct node_R *node;
    const int32_t *leaf; /* the leaf of a node */
    const real *value;
};

/* Set the cells that splits read, which are 0; `feature` has 2 j for column j, 2 j + 1 for codes.
 *
 * Every feature has two cells. A missing number is -INFINITY in the first, INFINITY in the second. */
static void load_cells_R(const struct row *row, int64_t mask, const int64_t *feature, int count,
                         real *cell)
{
    for (int c = 0; c < count; c++) {
        int64_t j = feature[c] / 2;
        if (feature[c] % 2)
            cell[2 * c] = row->codes[j] >= 0 ? (real)(row->codes[j] & 0xFFFFFF) : -1;
        else if (NUMBERS > 0)
            cell[2 * c] = (real)row->numbers[j];
    }
    for (int64_t e = 0; e < row->entries; e++) {
        real x = (real)row->values[e];
        int64_t c = row->columns[e] < 0 ? -1 : find_key(feature, count, 2 * (row->columns[e] & mask));
        if (c >= 0 && x != 0)
            cell[2 * c] = x;
    }
    for (int c = 0; c < count; c++) {
        int missing = cell[2 * c] != cell[2 * c];
        cell[2 * c + 1] = missing ? (real)INFINITY : cell[2 * c];
        cell[2 * c] = missing ? (real)-INFINITY : cell[2 * c];
    }
}

static void predict_trees_R(const struct trees_R *t, const real *cell, int32_t *at, real *h)
{
    for (int i = 0; i < t->trees; i++)
        at[i] = i;
    /* one level at a time, without branches: the processor loads the nodes of several trees */
    for (int level = 0; level < t->levels; level++)
        for (int i = 0; i < t->trees; i++) {
            struct node_R node = t->node[at[i]];
            real x = cell[node.cell / 2];
            int differs = x != node.threshold, above = x > node.threshold;
            at[i] = node.left + ((node.cell & 1) ? differs : above);
        }
    for (int i = 0; i < t->trees; i++)
        for (int k = 0; k < OUTPUTS; k++)
            h[k * t->trees + i] = t->value[t->leaf[at[i]] * OUTPUTS + k];
}
