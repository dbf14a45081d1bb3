#include "bench/build_id.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Notes stand one behind the other: a header, a name and a description, each filled up to the segment's alignment. */
static bool find_in_notes(const uint8_t *note, size_t length, size_t align, char out[65])
{
    ElfW(Nhdr) head;
    while (length >= sizeof head) {
        memcpy(&head, note, sizeof head);
        size_t name = ((size_t)head.n_namesz + align - 1) / align * align, rest = length - sizeof head;
        size_t size = ((size_t)head.n_descsz + align - 1) / align * align;
        const uint8_t *text = note + sizeof head, *id = text + name;
        if (name > rest || head.n_descsz > rest - name)
            return false;
        if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && memcmp(text, "GNU", 4) == 0 && head.n_descsz <= 32) {
            for (size_t i = 0; i < head.n_descsz; i++)
                snprintf(out + 2 * i, 3, "%02x", id[i]);
            return head.n_descsz > 0;
        }
        if (size > rest - name)
            return false;
        note = id + size;
        length = rest - name - size;
    }
    return false;
}

/* Called first for the program itself: its end is the end of the search. */
static int look(struct dl_phdr_info *info, size_t size, void *user)
{
    char *out = user;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum && !*out; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        size_t align = segment->p_align == 8 ? 8 : 4;
        if (segment->p_type == PT_NOTE && !find_in_notes((const uint8_t *)(uintptr_t)(info->dlpi_addr + segment->p_vaddr),
                                                         (size_t)segment->p_memsz, align, out))
            *out = '\0';
    }
    return 1;
}

bool mica_build_id(char out[65])
{
    out[0] = '\0';
    dl_iterate_phdr(look, out);
    return *out != '\0';
}
