# @NAME@: a tare plugin. Needs only a C++17 compiler and the SDK's headers.
TARE ?= tare
TARE_INCLUDE ?= @INCLUDE@
CXXFLAGS ?= -O2 -Wall -Wextra

@NAME@.so: @NAME@.cpp tare.map
	$(CXX) -std=c++17 $(CXXFLAGS) -fPIC -fvisibility=hidden -I"$(TARE_INCLUDE)" -shared -Wl,-z,defs,-z,relro,-z,now -Wl,--version-script=tare.map -o $@ @NAME@.cpp

check: @NAME@.so
	"$(TARE)" plugin check ./@NAME@.so
	TARE="$(TARE)" sh test.sh

clean:
	rm -f @NAME@.so

.PHONY: check clean
