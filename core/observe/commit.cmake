# Writes OUT with the commit of SOURCE, only when it has changed. Run at every build: what was known when configuring may be old.
# In an archive (git archive, a source distribution) packaging/commit.txt holds it.
file(READ ${SOURCE}/packaging/commit.txt COMMIT LIMIT 12)
if(NOT COMMIT MATCHES "^[0-9a-f]+$")
    execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=* OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
set(TEXT "#define TARE_COMMIT \"${COMMIT}\"\n")
set(OLD "")
if(EXISTS ${OUT})
    file(READ ${OUT} OLD)
endif()
if(NOT OLD STREQUAL TEXT)
    file(WRITE ${OUT} ${TEXT})
endif()
