# Writes a header with what identifies the engine of this build: a hash over its sources, the compiler and the flags. Two programs of
# one build share it, and it stays when something else changes. Only writes when it is another one.
#
#     cmake -DSOURCE=DIR -DOUT=FILE -DSALT=TEXT -P engine_id.cmake
file(GLOB_RECURSE files ${SOURCE}/src/*.c ${SOURCE}/src/*.h ${SOURCE}/include/mica/mica.h)
list(FILTER files EXCLUDE REGEX "/src/(serve|bench|router|pull)/")
list(SORT files)
set(all "${SALT}")
foreach(file ${files})
  file(SHA256 ${file} hash)
  string(APPEND all "${hash}")
endforeach()
string(SHA256 id "${all}")
string(SUBSTRING ${id} 0 32 id)
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define MICA_ENGINE_ID \"@id@\"\n" @ONLY)
