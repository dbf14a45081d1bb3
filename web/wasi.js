// wasi.js - the few system calls that the engine's C library makes: the clock, random numbers, and what it prints when it dies. There are
// no files: whoever looks for one is told so.

const ERRNO = { success: 0, badf: 8, inval: 28, noent: 44, nosys: 52 };

export class Exit extends Error {
  constructor(code) {
    super(`the module ended with status ${code}`);
    this.code = code;
  }
}

// The import object for a module; `memory` gives its memory, `print` takes lines of its standard output and error output.
export function wasiImports(module, memory, print) {
  const view = () => new DataView(memory().buffer);
  const decoder = new TextDecoder();
  let line = "";
  const calls = {
    clock_time_get(id, precision, at) {
      const ms = id === 0 ? Date.now() : performance.now();
      view().setBigUint64(at, BigInt(Math.round(ms * 1e6)), true);
      return ERRNO.success;
    },
    clock_res_get(id, at) {
      view().setBigUint64(at, 1000n, true);
      return ERRNO.success;
    },
    random_get(at, length) {
      for (let done = 0; done < length; done += 65536) // the most that one call gives
        crypto.getRandomValues(new Uint8Array(memory().buffer, at + done, Math.min(65536, length - done)));
      return ERRNO.success;
    },
    fd_write(fd, list, count, written) {
      if (fd !== 1 && fd !== 2) return ERRNO.badf;
      let total = 0;
      for (let i = 0; i < count; i++) {
        const at = view().getUint32(list + 8 * i, true), length = view().getUint32(list + 8 * i + 4, true);
        line += decoder.decode(new Uint8Array(memory().buffer, at, length));
        total += length;
      }
      const lines = line.split("\n");
      line = lines.pop();
      lines.forEach((text) => print(text));
      view().setUint32(written, total, true);
      return ERRNO.success;
    },
    fd_fdstat_get(fd, at) {
      if (fd > 2) return ERRNO.badf;
      new Uint8Array(memory().buffer, at, 24).fill(0);
      view().setUint8(at, 2); // a character device
      return ERRNO.success;
    },
    environ_sizes_get(count, bytes) {
      view().setUint32(count, 0, true);
      view().setUint32(bytes, 0, true);
      return ERRNO.success;
    },
    args_sizes_get(count, bytes) {
      return calls.environ_sizes_get(count, bytes);
    },
    environ_get: () => ERRNO.success,
    args_get: () => ERRNO.success,
    sched_yield: () => ERRNO.success,
    fd_prestat_get: () => ERRNO.badf,
    fd_prestat_dir_name: () => ERRNO.badf,
    fd_close: () => ERRNO.badf,
    path_open: () => ERRNO.noent,
    path_filestat_get: () => ERRNO.noent,
    proc_exit(code) {
      throw new Exit(code);
    },
  };
  const imports = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module))
    if (from === "wasi_snapshot_preview1") imports[name] = calls[name] ?? (() => ERRNO.nosys);
  return { wasi_snapshot_preview1: imports };
}
