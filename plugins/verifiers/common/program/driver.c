#include "driver.h"

tare_status driver_error(tare_error *error)
{
    json_t *j = error->message[0] == '{' ? json_loads(error->message, 0, NULL) : NULL;
    const json_t *why = json_object_get(j, "error");
    if (json_is_string(why)) tare_fail(error, error->code, "%s", json_string_value(why));
    json_decref(j);
    return error->code;
}

tare_status driver_refuse(tare_text reply, tare_error *error)
{
    return tare_fail(error, TARE_E_PLUGIN, "python answered '%.*s'", (int)(reply.size < 200 ? reply.size : 200), reply.data);
}

tare_status driver_answer(tare_text reply, json_t **out, tare_error *error)
{
    json_t *j = json_loadb(reply.data, (size_t)reply.size, 0, NULL);
    const json_t *wrong = json_object_get(j, "error");
    tare_status s = TARE_OK;
    if (json_is_string(wrong))
        s = tare_fail(error, TARE_E_PLUGIN, "%.450s", json_string_value(wrong));
    else if (!json_is_object(j))
        s = driver_refuse(reply, error);
    *out = s ? NULL : j;
    if (s) json_decref(j);
    return s;
}
