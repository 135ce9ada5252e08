/* Checks a file as ELF before the dynamic loader runs its constructors. Only those parts are read
 * that decide whether it can be a plugin here. */
#include "base/fs.h"
#include "plugin/check/internal.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#define HOST_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define HOST_MACHINE EM_AARCH64
#elif defined(__riscv)
#define HOST_MACHINE EM_RISCV
#elif defined(__powerpc64__)
#define HOST_MACHINE EM_PPC64
#else
#define HOST_MACHINE EM_NONE
#endif

static const char *machine_name(unsigned machine)
{
    switch (machine) {
    case EM_X86_64:
        return "x86-64";
    case EM_AARCH64:
        return "AArch64";
    case EM_386:
        return "32-bit x86";
    case EM_ARM:
        return "32-bit ARM";
    case EM_RISCV:
        return "RISC-V";
    case EM_PPC64:
        return "PowerPC 64";
    default:
        return "another machine";
    }
}

static bool is_inside(const struct fs_map *m, uint64_t offset, uint64_t size)
{
    return offset <= (uint64_t)m->size && size <= (uint64_t)m->size - offset;
}

static tare_status check_header(const struct fs_map *m, Elf64_Ehdr *h, const char *path, struct err *e)
{
    const unsigned char *d = m->data;
    if (m->size < EI_NIDENT || memcmp(d, ELFMAG, SELFMAG))
        FAIL(e, TARE_E_CORRUPT, "%s: not a shared object (no ELF header%s); a plugin is built with cc -shared", path,
             m->size >= 2 && !memcmp(d, "MZ", 2)                 ? ": this is a Windows file"
             : m->size >= 4 && !memcmp(d + 1, "\xfa\xed\xfe", 3) ? ": this is a macOS file"
                                                                 : "");
    if (d[EI_CLASS] != ELFCLASS64 || d[EI_DATA] != ELFDATA2LSB)
        FAIL(e, TARE_E_VERSION, "%s: a %s-bit %s-endian object, this program is 64-bit little-endian; rebuild the plugin for it",
             path, d[EI_CLASS] == ELFCLASS64 ? "64" : "32", d[EI_DATA] == ELFDATA2LSB ? "little" : "big");
    if (m->size < (int64_t)sizeof *h) FAIL(e, TARE_E_CORRUPT, "%s: cut short: %lld bytes", path, (long long)m->size);
    memcpy(h, d, sizeof *h);
    if (HOST_MACHINE != EM_NONE && h->e_machine != HOST_MACHINE)
        FAIL(e, TARE_E_VERSION, "%s: built for %s (ELF machine %u), this program runs on %s; rebuild the plugin for it", path,
             machine_name(h->e_machine), h->e_machine, machine_name(HOST_MACHINE));
    if (h->e_type != ET_DYN)
        FAIL(e, TARE_E_CORRUPT, "%s: %s, not a shared object; link it with -shared", path,
             h->e_type == ET_REL    ? "an object file (.o)"
             : h->e_type == ET_EXEC ? "a program"
             : h->e_type == ET_CORE ? "a core dump"
                                    : "an ELF file of an unknown type");
    if (!is_inside(m, h->e_phoff, (uint64_t)h->e_phnum * sizeof(Elf64_Phdr)))
        FAIL(e, TARE_E_CORRUPT, "%s: cut short: its program headers are beyond its end", path);
    for (unsigned i = 0; i < h->e_phnum; i++) {
        Elf64_Phdr p;
        memcpy(&p, d + h->e_phoff + i * sizeof p, sizeof p);
        if (p.p_type == PT_LOAD && !is_inside(m, p.p_offset, p.p_filesz))
            FAIL(e, TARE_E_CORRUPT, "%s: cut short: %lld bytes, but a segment ends at %llu", path, (long long)m->size,
                 (unsigned long long)(p.p_offset + p.p_filesz));
        if (p.p_type == PT_GNU_STACK && p.p_flags & PF_X)
            FAIL(
                e, TARE_E_PLUGIN,
                "%s: it needs an executable stack, which the loader would give to the whole program; link with -z noexecstack (an assembly file needs a section .note.GNU-stack)",
                path);
    }
    return TARE_OK;
}

/* Returns the major version of an exported tare_plugin_vN, or -1. */
static long entry_major(const char *name, uint64_t capacity)
{
    static const char prefix[] = "tare_plugin_v";
    if (capacity <= sizeof prefix || strncmp(name, prefix, sizeof prefix - 1)) return -1;
    if (!memchr(name, 0, capacity)) return -1;
    char *end;
    const long major = strtol(name + sizeof prefix - 1, &end, 10);
    return *end || major < 0 ? -1 : major;
}

/* Looks for entry points in the dynamic symbol table. A file without section headers is left to
 * dlsym. */
static tare_status check_entry(const struct fs_map *m, const Elf64_Ehdr *h, const char *path, struct err *e)
{
    if (!h->e_shnum || h->e_shentsize != sizeof(Elf64_Shdr) || !is_inside(m, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr)))
        return TARE_OK;
    long other = -1;
    for (unsigned i = 0; i < h->e_shnum; i++) {
        Elf64_Shdr symbols, strings;
        memcpy(&symbols, m->data + h->e_shoff + i * sizeof symbols, sizeof symbols);
        if (symbols.sh_type != SHT_DYNSYM || symbols.sh_link >= h->e_shnum) continue;
        memcpy(&strings, m->data + h->e_shoff + symbols.sh_link * sizeof strings, sizeof strings);
        if (!is_inside(m, symbols.sh_offset, symbols.sh_size) || !is_inside(m, strings.sh_offset, strings.sh_size))
            FAIL(e, TARE_E_CORRUPT, "%s: cut short: its symbol table is beyond its end", path);
        for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols.sh_size; at += sizeof(Elf64_Sym)) {
            Elf64_Sym s;
            memcpy(&s, m->data + symbols.sh_offset + at, sizeof s);
            if (s.st_shndx == SHN_UNDEF || s.st_name >= strings.sh_size) continue;
            const long major = entry_major((const char *)m->data + strings.sh_offset + s.st_name, strings.sh_size - s.st_name);
            if (major == TARE_ABI_MAJOR) return TARE_OK;
            if (major >= 0) other = major;
        }
    }
    if (other >= 0)
        FAIL(e, TARE_E_VERSION, "%s: built for plugin ABI %ld, but this program has %d; rebuild it against this program's SDK",
             path, other, TARE_ABI_MAJOR);
    FAIL(
        e, TARE_E_PLUGIN,
        "%s: a shared object, but not a tare plugin: it exports no function tare_plugin_v%d; is TARE_EXPORT missing, or hidden by a version script?",
        path, TARE_ABI_MAJOR);
}

tare_status elf_check(const char *path, uint64_t *hash, struct err *e)
{
    OWNED(fs_unmap) struct fs_map m = {0};
    Elf64_Ehdr h;
    TRY(fs_map(path, &m, e));
    TRY(check_header(&m, &h, path, e));
    TRY(check_entry(&m, &h, path, e));
    *hash = fs_hash(m.data, m.size, 0);
    return TARE_OK;
}

tare_status elf_exports(const char *path, tare_status (*visit)(void *ctx, const char *name, bool unique, struct err *e), void *ctx,
                        struct err *e)
{
    struct fs_map m;
    Elf64_Ehdr h;
    TRY(fs_map(path, &m, e));
    tare_status status = check_header(&m, &h, path, e);
    const bool sections = !status && h.e_shnum && h.e_shentsize == sizeof(Elf64_Shdr) &&
                          is_inside(&m, h.e_shoff, (uint64_t)h.e_shnum * sizeof(Elf64_Shdr));
    if (sections)
        for (unsigned i = 0; i < h.e_shnum && !status; i++) {
            Elf64_Shdr symbols, strings;
            memcpy(&symbols, m.data + h.e_shoff + i * sizeof symbols, sizeof symbols);
            if (symbols.sh_type != SHT_DYNSYM || symbols.sh_link >= h.e_shnum) continue;
            memcpy(&strings, m.data + h.e_shoff + symbols.sh_link * sizeof strings, sizeof strings);
            if (!is_inside(&m, symbols.sh_offset, symbols.sh_size) || !is_inside(&m, strings.sh_offset, strings.sh_size)) continue;
            for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols.sh_size && !status; at += sizeof(Elf64_Sym)) {
                Elf64_Sym s;
                memcpy(&s, m.data + symbols.sh_offset + at, sizeof s);
                const char *name = (const char *)m.data + strings.sh_offset + s.st_name;
                const bool visible = ELF64_ST_VISIBILITY(s.st_other) == STV_DEFAULT && ELF64_ST_BIND(s.st_info) != STB_LOCAL;
                if (s.st_shndx == SHN_UNDEF || !visible || s.st_name >= strings.sh_size ||
                    !memchr(name, 0, strings.sh_size - s.st_name))
                    continue;
                status = visit(ctx, name, ELF64_ST_BIND(s.st_info) == STB_GNU_UNIQUE, e);
            }
        }
    fs_unmap(&m);
    return status;
}

/* Finds the bytes of an address of the loaded file; NULL: in no segment. */
static const char *at_address(const struct fs_map *m, const Elf64_Ehdr *h, uint64_t address, uint64_t *left)
{
    for (unsigned i = 0; i < h->e_phnum; i++) {
        Elf64_Phdr p;
        memcpy(&p, m->data + h->e_phoff + i * sizeof p, sizeof p);
        if (p.p_type != PT_LOAD || address < p.p_vaddr || address - p.p_vaddr >= p.p_filesz) continue;
        *left = p.p_filesz - (address - p.p_vaddr);
        return (const char *)m->data + p.p_offset + (address - p.p_vaddr);
    }
    return NULL;
}

/* Copies the folders of DT_RPATH or DT_RUNPATH. names: the address of the names; name: an offset. */
static void copy_folders(const struct fs_map *m, const Elf64_Ehdr *h, uint64_t names, uint64_t name, struct elf_link *out)
{
    uint64_t left = 0;
    const char *text = at_address(m, h, names + name, &left);
    if (text && memchr(text, 0, left)) snprintf(out->folders, sizeof out->folders, "%s", text);
}

static void read_dynamic(const struct fs_map *m, const Elf64_Ehdr *h, const Elf64_Phdr *p, struct elf_link *out)
{
    uint64_t names = 0, name = UINT64_MAX;
    if (!is_inside(m, p->p_offset, p->p_filesz)) return;
    for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= p->p_filesz; at += sizeof(Elf64_Dyn)) {
        Elf64_Dyn d;
        memcpy(&d, m->data + p->p_offset + at, sizeof d);
        if (d.d_tag == DT_NULL) break;
        if (d.d_tag == DT_TEXTREL || (d.d_tag == DT_FLAGS && d.d_un.d_val & DF_TEXTREL)) out->code_relocations = true;
        if (d.d_tag == DT_FLAGS && d.d_un.d_val & DF_STATIC_TLS) out->static_tls = true;
        if (d.d_tag == DT_STRTAB) names = d.d_un.d_ptr;
        if (d.d_tag == DT_RPATH || d.d_tag == DT_RUNPATH) name = d.d_un.d_val;
    }
    if (names && name != UINT64_MAX) copy_folders(m, h, names, name, out);
}

tare_status elf_linking(const char *path, struct elf_link *out, struct err *e)
{
    OWNED(fs_unmap) struct fs_map m = {0};
    Elf64_Ehdr h;
    *out = (struct elf_link){0};
    TRY(fs_map(path, &m, e));
    TRY(check_header(&m, &h, path, e));
    for (unsigned i = 0; i < h.e_phnum; i++) {
        Elf64_Phdr p;
        memcpy(&p, m.data + h.e_phoff + i * sizeof p, sizeof p);
        if (p.p_type == PT_DYNAMIC) read_dynamic(&m, &h, &p, out);
    }
    return TARE_OK;
}
