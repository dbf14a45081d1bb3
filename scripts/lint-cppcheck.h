/* For cppcheck only: jansson's loops, whose header it does not read. */
#define json_array_foreach(array, i, value) for (i = 0; i < json_array_size(array) && (value = json_array_get(array, i)); i++)
#define json_object_foreach(object, key, value) \
    for (key = json_object_iter_key(json_object_iter(object)); key && (value = json_object_get(object, key)); key = 0)
#define json_object_foreach_safe(object, n, key, value) json_object_foreach (object, key, value)
