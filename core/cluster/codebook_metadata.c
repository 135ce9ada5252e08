#include "base/fs.h"
#include "cluster/codebook.h"

tare_status codebook_metadata(const char *path, json_t **out, struct err *e)
{
    struct fs_map m;
    json_t *header = NULL;
    TRY(fs_map(path, &m, e));
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--) length = m.size >= 8 ? length << 8 | m.data[i] : 0;
    tare_status status = TARE_OK;
    if (m.size < 8 || length > (uint64_t)m.size - 8)
        status =
            err_set(e, TARE_E_CORRUPT, __FILE__, __LINE__, "%s: is not a codebook: its header does not fit into the file", path);
    if (!status) status = json_parse((const char *)m.data + 8, (int64_t)length, path, &header, e);
    fs_unmap(&m);
    TRY(status);
    *out = json_incref(json_object_get(header, "__metadata__"));
    json_decref(header);
    if (!json_is_object(*out)) {
        json_decref(*out);
        FAIL(e, TARE_E_CORRUPT, "%s: is not a codebook: it has no __metadata__; make one with `tare codebook`", path);
    }
    return TARE_OK;
}
