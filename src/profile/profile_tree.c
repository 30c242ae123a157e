/* SPDX-License-Identifier: Apache-2.0 */
/* Ranked methods and the merged tree of stacks, both from a view. */
#include "profile/profile.h"

#include "base/hash.h"
#include "profile/call_interval.h"

/* The weight of a method by frame kind, to find the kind in which most of it was spent. */
struct by_kind {
    uint64_t weight[FRAME_KINDS];
};

static enum frame_kind heaviest(const struct by_kind *k)
{
    int best = 0;
    for (int i = 1; i < FRAME_KINDS; i++) {
        if (k->weight[i] > k->weight[best])
            best = i;
    }
    return (enum frame_kind)best;
}

struct ranking {
    const struct profile_view *view;
    uint32_t *index; /* by label: the position in rows, + 1 */
    VEC(struct profile_rank) rows;
    VEC(struct by_kind) kinds;
    VEC(uint32_t) depth; /* by row: how often it occurs on the current path */
    VEC(int64_t) path;   /* the rows of the current path's nodes; -ENODATA for a mark */
};

/* Returns the row of a node's method, -ENODATA for a mark, or -ENOMEM. */
static int64_t row_of(struct ranking *r, uint32_t node)
{
    const struct profile *p = r->view->profile;
    const struct profile_frame *f = profile_node_frame(p, node);
    if (f->kind == FRAME_MARK)
        return -ENODATA;
    uint32_t label = p->methods.data[f->method].label, *known = &r->index[label];
    if (!*known) {
        struct profile_rank row = {.label = label};
        if (vec_push(&r->rows, row) < 0 || vec_extend(&r->kinds, 1) < 0 ||
            vec_extend(&r->depth, 1) < 0)
            return -ENOMEM;
        *known = (uint32_t)r->rows.len;
    }
    return *known - 1;
}

static int enter(struct ranking *r, uint32_t node)
{
    int64_t i = row_of(r, node);
    if (vec_push(&r->path, i) < 0)
        return -ENOMEM;
    if (i < 0)
        return i == -ENODATA ? 0 : (int)i;
    const struct profile_view *v = r->view;
    r->rows.data[i].self += v->self[node];
    if (r->depth.data[i]++ == 0) {
        r->rows.data[i].total += v->total[node];
        r->kinds.data[i].weight[profile_node_frame(v->profile, node)->kind] += v->total[node];
    }
    return 0;
}

static void leave(struct ranking *r)
{
    int64_t i = r->path.data[--r->path.len];
    if (i >= 0)
        r->depth.data[i]--;
}

/*
 * Walks depth first without recursion, because stacks may be very deep. Branches without weight are
 * skipped.
 */
static int walk(struct ranking *r)
{
    const struct profile_node *nodes = r->view->profile->nodes.data;
    uint32_t n = nodes[0].first_child;
    while (n) {
        bool counts = r->view->total[n];
        int error = counts ? enter(r, n) : 0;
        if (error < 0)
            return error;
        if (counts && nodes[n].first_child) {
            n = nodes[n].first_child;
            continue;
        }
        for (; n; n = nodes[n].parent) {
            if (r->view->total[n])
                leave(r);
            if (nodes[n].next_sibling) {
                n = nodes[n].next_sibling;
                break;
            }
        }
    }
    return 0;
}

static int compare_ranks(const void *a, const void *b, void *profile)
{
    const struct profile_rank *x = a, *y = b;
    if (x->few != y->few)
        return x->few ? 1 : -1;
    if (x->self != y->self)
        return x->self < y->self ? 1 : -1;
    if (x->total != y->total)
        return x->total < y->total ? 1 : -1;
    struct str s = profile_text(profile, x->label), t = profile_text(profile, y->label);
    int c = memcmp(s.data, t.data, MIN(s.len, t.len));
    return c ? c : (s.len > t.len) - (s.len < t.len);
}

static void mark_estimated(struct ranking *r)
{
    const struct profile *p = r->view->profile;
    for (size_t i = 0; i < p->sites.len && r->view->metric == PROFILE_ALLOCATION; i++) {
        const struct profile_site *s = &p->sites.data[i];
        if (!s->estimated || !s->node || !r->view->self[s->node])
            continue;
        uint32_t row = r->index[p->methods.data[profile_node_frame(p, s->node)->method].label];
        if (row)
            r->rows.data[row - 1].estimated = true;
    }
}

/*
 * Marks the rows that may have taken no time. If the recording has calls, the calls of a row
 * decide, because their time includes the cost of counting; otherwise its weight decides.
 */
static int mark_few(struct ranking *r)
{
    const struct profile_view *v = r->view;
    const struct profile *p = v->profile;
    bool by_calls = v->metric == PROFILE_EXACT && p->timed_by_readings && p->calls.len;
    uint64_t least = profile_least_weight(v);
    _cleanup_free_ struct call_sum *sums = calloc(r->rows.len + 1, sizeof(*sums));
    if (!sums)
        return -ENOMEM;
    for (size_t i = 0; i < p->calls.len && by_calls; i++) {
        const struct profile_calls *c = &p->calls.data[i];
        uint32_t row = r->index[p->methods.data[profile_node_frame(p, c->node)->method].label];
        if ((v->thread_counts && !v->thread_counts[c->thread]) ||
            (v->node_counts && !v->node_counts[c->node]))
            continue;
        call_sum_add(&sums[row], c);
    }
    for (size_t i = 0; i < r->rows.len; i++)
        r->rows.data[i].few =
            by_calls ? !call_time_is_known(&sums[i + 1]) : r->rows.data[i].self < least;
    return 0;
}

int profile_rank(const struct profile_view *v, struct profile_rank **ret, size_t *ret_len)
{
    struct ranking r = {.view = v};
    r.index = calloc(v->profile->strings.strings.len + 1, sizeof(*r.index));
    int error = r.index ? walk(&r) : -ENOMEM;
    if (error == 0)
        error = mark_few(&r);
    if (error == 0) {
        for (size_t i = 0; i < r.rows.len; i++)
            r.rows.data[i].kind = heaviest(&r.kinds.data[i]);
        mark_estimated(&r);
        if (r.rows.len)
            qsort_r(r.rows.data, r.rows.len, sizeof(*r.rows.data), compare_ranks,
                    (void *)v->profile);
        *ret = TAKE(r.rows.data);
        *ret_len = r.rows.len;
    }
    free(r.index);
    vec_release(&r.rows);
    vec_release(&r.kinds);
    vec_release(&r.depth);
    vec_release(&r.path);
    return error;
}

struct merging {
    const struct profile_view *view;
    struct profile_tree tree;
    uint32_t *index; /* siblings by parent and label, in open addressing; 0: free */
    size_t cap;      /* 0 or a power of two; at least a quarter is free */
    size_t indexed;  /* how many nodes it holds */
    /*
     * By node: 0 while all of its weight is of one kind, which is stored in the node; otherwise its
     * place in kinds.
     */
    VEC(uint32_t) mixed;
    VEC(struct by_kind) kinds; /* element 0 is unused */
};

/*
 * Returns the place of a node in the index, or the place where it belongs. There is always a free
 * place.
 */
static uint32_t *find_child(const struct merging *m, uint32_t parent, uint32_t label)
{
    size_t i = hash_u64((uint64_t)parent << 32 | label) & (m->cap - 1);
    for (; m->index[i]; i = (i + 1) & (m->cap - 1)) {
        const struct profile_tree_node *n = &m->tree.nodes.data[m->index[i]];
        if (n->parent == parent && n->label == label)
            break;
    }
    return &m->index[i];
}

/*
 * Adds a node to the index, which has only nodes with siblings; an only child is found without it.
 */
static int index_child(struct merging *m, uint32_t node)
{
    if (m->indexed >= m->cap / 4 * 3) {
        size_t cap = m->cap ? m->cap * 2 : 64;
        size_t n = m->cap;
        uint32_t *index = calloc(cap, sizeof(*index)), *old = m->index;
        if (!index)
            return -ENOMEM;
        m->index = index;
        m->cap = cap;
        for (size_t i = 0; i < n; i++) {
            if (!old[i])
                continue;
            const struct profile_tree_node *t = &m->tree.nodes.data[old[i]];
            *find_child(m, t->parent, t->label) = old[i];
        }
        free(old);
    }
    const struct profile_tree_node *t = &m->tree.nodes.data[node];
    uint32_t *at = find_child(m, t->parent, t->label);
    m->indexed += !*at;
    *at = node;
    return 0;
}

/* Returns the child of `parent` for the frame of a profile's node, or -ENOMEM. */
static int64_t child_of(struct merging *m, uint32_t parent, uint32_t node)
{
    const struct profile *p = m->view->profile;
    const struct profile_frame *f = profile_node_frame(p, node);
    uint32_t label = p->methods.data[f->method].label;
    uint32_t first = m->tree.nodes.data[parent].first_child;
    if (first && m->tree.nodes.data[first].label == label)
        return first;
    if (first && !m->tree.nodes.data[first].next_sibling && index_child(m, first) < 0)
        return -ENOMEM;
    uint32_t known = first ? *find_child(m, parent, label) : 0;
    if (known)
        return known;
    struct profile_tree_node t = {
        .parent = parent, .next_sibling = first, .label = label, .kind = f->kind};
    if (m->tree.nodes.len > UINT32_MAX || vec_push(&m->tree.nodes, t) < 0 ||
        vec_extend(&m->mixed, 1) < 0)
        return -ENOMEM;
    uint32_t fresh = (uint32_t)m->tree.nodes.len - 1;
    if (first && index_child(m, fresh) < 0)
        return -ENOMEM;
    return m->tree.nodes.data[parent].first_child = fresh;
}

static int add_weight(struct merging *m, uint32_t to, uint32_t node, uint64_t weight)
{
    struct profile_tree_node *t = &m->tree.nodes.data[to];
    enum frame_kind kind = profile_node_frame(m->view->profile, node)->kind;
    if (kind != t->kind && !m->mixed.data[to]) {
        m->mixed.data[to] = (uint32_t)m->kinds.len;
        if (vec_extend(&m->kinds, 1) < 0)
            return -ENOMEM;
        m->kinds.data[m->kinds.len - 1].weight[t->kind] = t->total;
    }
    if (m->mixed.data[to])
        m->kinds.data[m->mixed.data[to]].weight[kind] += weight;
    t->total += weight;
    return 0;
}

static int merge_upright(struct merging *m)
{
    const struct profile_view *v = m->view;
    size_t n = v->profile->nodes.len;
    _cleanup_free_ uint32_t *merged = calloc(n, sizeof(*merged));
    if (!merged)
        return -ENOMEM;
    m->tree.nodes.data[0].self = v->self[0];
    for (size_t i = 1; i < n; i++) {
        if (!v->total[i])
            continue;
        int64_t to = child_of(m, merged[v->profile->nodes.data[i].parent], (uint32_t)i);
        if (to < 0)
            return (int)to;
        merged[i] = (uint32_t)to;
        m->tree.nodes.data[to].self += v->self[i];
        int r = add_weight(m, (uint32_t)to, (uint32_t)i, v->total[i]);
        if (r < 0)
            return r;
    }
    return 0;
}

static int merge_inverted(struct merging *m)
{
    const struct profile_view *v = m->view;
    for (size_t i = 0; i < v->profile->nodes.len; i++) {
        if (!v->self[i])
            continue;
        uint32_t at = 0;
        for (uint32_t n = (uint32_t)i; n; n = v->profile->nodes.data[n].parent) {
            int64_t to = child_of(m, at, n);
            if (to < 0)
                return (int)to;
            at = (uint32_t)to;
            int r = add_weight(m, at, n, v->self[i]);
            if (r < 0)
                return r;
        }
        m->tree.nodes.data[at].self += v->self[i];
    }
    return 0;
}

static int compare_children(const void *a, const void *b, void *tree)
{
    const struct profile_tree_node *nodes = ((struct profile_tree *)tree)->nodes.data;
    const struct profile_tree_node *x = &nodes[*(const uint32_t *)a],
                                   *y = &nodes[*(const uint32_t *)b];
    if (x->total != y->total)
        return x->total < y->total ? 1 : -1;
    return (x->label > y->label) - (x->label < y->label);
}

/* Sorts the children of each node, most of which have one. */
static int sort_children(struct profile_tree *t)
{
    VEC(uint32_t) list = {0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < t->nodes.len; i++) {
        uint32_t first = t->nodes.data[i].first_child;
        if (!first || !t->nodes.data[first].next_sibling)
            continue;
        vec_clear(&list);
        for (uint32_t c = first; r == 0 && c; c = t->nodes.data[c].next_sibling)
            r = vec_push(&list, c);
        if (r < 0)
            break;
        qsort_r(list.data, list.len, sizeof(*list.data), compare_children, t);
        for (size_t k = 0; k < list.len; k++)
            t->nodes.data[list.data[k]].next_sibling = k + 1 < list.len ? list.data[k + 1] : 0;
        t->nodes.data[i].first_child = list.data[0];
    }
    vec_release(&list);
    return r;
}

int profile_tree_init(struct profile_tree *ret, const struct profile_view *v, bool inverted)
{
    struct merging m = {.view = v};
    int r = vec_extend(&m.tree.nodes, 1) < 0 || vec_extend(&m.mixed, 1) < 0 ||
                    vec_extend(&m.kinds, 1) < 0
                ? -ENOMEM
                : 0;
    if (r == 0)
        r = inverted ? merge_inverted(&m) : merge_upright(&m);
    if (r == 0) {
        m.tree.nodes.data[0].total = v->weight;
        for (size_t i = 1; i < m.tree.nodes.len; i++)
            if (m.mixed.data[i])
                m.tree.nodes.data[i].kind = heaviest(&m.kinds.data[m.mixed.data[i]]);
        r = sort_children(&m.tree);
    }
    free(m.index);
    vec_release(&m.mixed);
    vec_release(&m.kinds);
    if (r < 0)
        profile_tree_release(&m.tree);
    else
        *ret = m.tree;
    return r;
}

void profile_tree_release(struct profile_tree *t)
{
    vec_release(&t->nodes);
}
