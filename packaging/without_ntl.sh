#!/usr/bin/env bash
# Makes FOLDER/libntl.so.N, an object that replaces the library NTL in the wheel. Debian's FLINT has
# functions that convert numbers of NTL, so it needs that library to load, and with it gf2x. tare
# calls none of them. gf2x is under the GPL, and NTL needs a newer libstdc++ than manylinux_2_34
# allows. Each function of this object aborts. If FLINT does not need NTL, the folder stays empty.
#   packaging/without_ntl.sh FOLDER
set -euo pipefail
folder=${1:?usage: without_ntl.sh FOLDER}
mkdir -p "$folder"
loader() { cc -print-file-name="$1"; }
flint=$(realpath "$(loader libflint.so)")
name=$(readelf -dW "$flint" | sed -n 's/.*(NEEDED).*\[\(libntl\.so\.[0-9]*\)\]/\1/p')
[ -n "$name" ] || exit 0
nm -D --undefined-only "$flint" | awk '$1 == "U" { print $2 }' | sort > "$folder/wanted"
# Rows of readelf: number, value, size, type, binding, visibility, section, name.
readelf --dyn-syms -W "$(loader "$name")" | awk 'FNR == NR { wanted[$1]; next } $7 != "UND" && $8 in wanted { print $3, $4, $8 }' "$folder/wanted" - |
    LC_ALL=C sort -k 3 > "$folder/symbols"
[ -s "$folder/symbols" ] || { echo "without_ntl.sh: $flint needs $name but no symbol of it was found" >&2; exit 1; }
{
    echo '#include <stdlib.h>'
    while read -r size type symbol; do
        case $type in
        FUNC) printf 'void at_%s(void) __asm__("%s"); void at_%s(void) { abort(); }\n' "$symbol" "$symbol" "$symbol" ;;
        TLS) printf 'extern _Thread_local char at_%s[%d] __asm__("%s"); _Thread_local char at_%s[%d];\n' "$symbol" "$size" "$symbol" "$symbol" "$size" ;;
        OBJECT) printf 'extern char at_%s[%d] __asm__("%s"); char at_%s[%d];\n' "$symbol" "$size" "$symbol" "$symbol" "$size" ;;
        *) echo "without_ntl.sh: $symbol: unknown type $type" >&2 && exit 1 ;;
        esac
    done < "$folder/symbols"
} > "$folder/without_ntl.c"
(cd "$folder" && cc -O1 -shared -fPIC -s -Wl,-soname,"$name" -o "$name" without_ntl.c)
