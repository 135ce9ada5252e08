#include "base/fs.h"
#include "cluster/codebook.h"

tare_status codebook_metadata(const char *path, json_t **out, struct err *e)
{
    OWNED(fs_unmap) struct fs_map m = {0};
    OWNED(json_decrefp) json_t *header = NULL;
    TRY(fs_map(path, &m, e));
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--) length = m.size >= 8 ? length << 8 | m.data[i] : 0;
    if (m.size < 8 || length > (uint64_t)m.size - 8)
        FAIL(e, TARE_E_CORRUPT, "%s: invalid codebook: the header exceeds the file", path);
    TRY(json_parse((const char *)m.data + 8, (int64_t)length, path, &header, e));
    json_t *metadata = json_object_get(header, "__metadata__");
    if (!json_is_object(metadata))
        FAIL(e, TARE_E_CORRUPT, "%s: is not a codebook: __metadata__ is missing; make one with `tare cluster train`", path);
    *out = json_incref(metadata);
    return TARE_OK;
}
