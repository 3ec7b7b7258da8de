// The files of the engine, in memory: what Go's package os asks of node's fs.
const files = new Map([["/", null], ["/tmp", null], ["/files", null]]); // path: null for a folder, or {data, size, time}
const most = 1 << 30; // bytes of all files
let stored = 0;

globalThis.fs = (() => {
  const constants = { O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2, O_CREAT: 64, O_EXCL: 128, O_TRUNC: 512, O_APPEND: 1024, O_DIRECTORY: 65536 };
  const open = new Map(); // number: {path, file, at, append}
  let next = 3;

  const fault = (code) => Object.assign(new Error(code), { code });
  const resolve = (path) => {
    const parts = String(path).startsWith("/") ? [] : ["files"]; // which is what cwd says
    for (const p of String(path).split("/")) {
      if (p === "..") parts.pop();
      else if (p && p !== ".") parts.push(p);
    }
    return "/" + parts.join("/");
  };
  const parent = (path) => path.slice(0, path.lastIndexOf("/")) || "/";
  const find = (path) => {
    const p = resolve(path);
    if (!files.has(p)) throw fault("ENOENT");
    return p;
  };
  // grow makes room for a file of a size.
  const grow = (file, size) => {
    if (size > file.data.length) {
      if (stored + size - file.size > most) throw fault("ENOSPC");
      const data = new Uint8Array(Math.max(size, Math.min(2 * file.data.length, most)));
      data.set(file.data.subarray(0, file.size));
      file.data = data;
    }
    stored += size - file.size;
    file.size = size;
  };
  const status = (path, file) => {
    const time = file?.time ?? 0;
    return {
      dev: 1, ino: 1, mode: file ? 0o100666 : 0o40777, nlink: 1, uid: 0, gid: 0, rdev: 0, size: file?.size ?? 0, blksize: 4096, blocks: 0,
      atimeMs: time, mtimeMs: time, ctimeMs: time, isDirectory: () => !file,
    };
  };
  const remove = (path) => {
    stored -= files.get(path)?.size ?? 0;
    files.delete(path);
  };
  const of = (fd) => open.get(fd) ?? (() => { throw fault("EBADF"); })();

  const calls = {
    open(path, flags) {
      const p = resolve(path);
      let file = files.get(p);
      if (file === undefined) {
        if (!(flags & constants.O_CREAT)) throw fault("ENOENT");
        if (files.get(parent(p)) !== null) throw fault("ENOENT");
        file = { data: new Uint8Array(0), size: 0, time: Date.now() };
        files.set(p, file);
      } else if (flags & constants.O_CREAT && flags & constants.O_EXCL) throw fault("EEXIST");
      else if (file === null && flags & (constants.O_WRONLY | constants.O_RDWR)) throw fault("EISDIR");
      if (file && flags & constants.O_TRUNC) {
        stored -= file.size;
        Object.assign(file, { data: new Uint8Array(0), size: 0 });
      }
      open.set(next, { path: p, file, at: 0, append: flags & constants.O_APPEND });
      return next++;
    },
    close(fd) { of(fd); open.delete(fd); },
    fstat(fd) { const f = of(fd); return status(f.path, f.file); },
    stat(path) { const p = find(path); return status(p, files.get(p)); },
    lstat(path) { return calls.stat(path); },
    read(fd, buffer, offset, length, position) {
      const f = of(fd);
      if (!f.file) throw fault("EISDIR");
      const at = position ?? f.at, n = Math.max(0, Math.min(length, f.file.size - at));
      buffer.set(f.file.data.subarray(at, at + n), offset);
      if (position === null || position === undefined) f.at += n;
      return n;
    },
    write(fd, buffer, offset, length, position) {
      const f = of(fd);
      const at = f.append ? f.file.size : position ?? f.at;
      if (at + length > f.file.size) grow(f.file, at + length);
      f.file.data.set(buffer.subarray(offset, offset + length), at);
      if (position === null || position === undefined) f.at = at + length;
      return length;
    },
    ftruncate(fd, length) { grow(of(fd).file, length); },
    truncate(path, length) { grow(files.get(find(path)), length); },
    mkdir(path) {
      const p = resolve(path);
      if (files.has(p)) throw fault("EEXIST");
      if (files.get(parent(p)) !== null) throw fault("ENOENT");
      files.set(p, null);
    },
    readdir(path) {
      const p = find(path), prefix = p === "/" ? p : p + "/";
      return [...files.keys()].filter((f) => f !== p && f.startsWith(prefix) && !f.slice(prefix.length).includes("/")).map((f) => f.slice(prefix.length));
    },
    rename(from, to) {
      const p = find(from), q = resolve(to), file = files.get(p);
      if (files.has(q)) remove(q);
      files.delete(p);
      files.set(q, file);
    },
    rmdir(path) {
      const p = find(path);
      if (files.get(p) !== null) throw fault("ENOTDIR");
      if (calls.readdir(p).length) throw fault("ENOTEMPTY");
      files.delete(p);
    },
    unlink(path) {
      const p = find(path);
      if (files.get(p) === null) throw fault("EISDIR");
      remove(p);
    },
    fsync() {}, chmod(path) { find(path); }, fchmod() {}, chown(path) { find(path); }, fchown() {}, lchown(path) { find(path); }, utimes(path) { find(path); },
    readlink(path) { find(path); throw fault("EINVAL"); },
    link() { throw fault("EPERM"); }, symlink() { throw fault("EPERM"); },
  };

  // What is printed has no reader. Its beginning says why the engine ended, if it does: nothing else prints.
  const print = (bytes) => (globalThis.printed = ((globalThis.printed ?? "") + new TextDecoder().decode(bytes)).slice(0, 4000));
  const fs = { constants, writeSync: (fd, buffer) => (print(buffer), buffer.length) };
  for (const [name, call] of Object.entries(calls)) {
    fs[name] = (...args) => {
      const done = args.pop();
      let result;
      try {
        result = name === "write" && args[0] < 3 ? fs.writeSync(args[0], args[1].subarray(args[2], args[2] + args[3])) : call(...args);
      } catch (err) {
        return done(err);
      }
      done(null, result);
    };
  }
  return fs;
})();

globalThis.process = {
  getuid: () => 0, getgid: () => 0, geteuid: () => 0, getegid: () => 0, getgroups: () => [], pid: 1, ppid: 1,
  umask: () => 0o22, cwd: () => "/files", chdir() {},
};

// put stores a file that the page brings.
function put(name, bytes) {
  const old = files.get("/files/" + name);
  if (stored - (old?.size ?? 0) + bytes.length > most) throw new Error(`${name} is too large: all files together may have ${most} bytes`);
  stored += bytes.length - (old?.size ?? 0);
  files.set("/files/" + name, { data: bytes, size: bytes.length, time: Date.now() });
}
