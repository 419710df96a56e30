package main

import "fmt"

//go:wasmimport wasi_snapshot_preview1 fd_write
//go:noescape
func fdWrite(fd int32, vectors, n, written uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_read
//go:noescape
func fdRead(fd int32, vectors, n, read uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_fdstat_get
//go:noescape
func fdStat(fd int32, stat uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_close
//go:noescape
func fdClose(fd int32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_filestat_get
//go:noescape
func fileStat(fd int32, stat uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_prestat_get
//go:noescape
func prestat(fd int32, stat uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_renumber
//go:noescape
func renumber(fd, to int32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_seek
//go:noescape
func seek(fd int32, offset int64, whence int32, position uint32) uint32

//go:wasmimport wasi_snapshot_preview1 fd_sync
//go:noescape
func flush(fd int32) uint32

//go:wasmimport wasi_snapshot_preview1 poll_oneoff
//go:noescape
func poll(in, out, n, events uint32) uint32

//go:wasmimport wasi_snapshot_preview1 sock_accept
//go:noescape
func accept(fd int32, flags int32, opened uint32) uint32

//go:wasmimport wasi_snapshot_preview1 sock_recv
//go:noescape
func receive(fd int32, vectors, n uint32, flags int32, read, out uint32) uint32

//go:wasmimport wasi_snapshot_preview1 sock_send
//go:noescape
func send(fd int32, vectors, n uint32, flags int32, sent uint32) uint32

//go:wasmimport wasi_snapshot_preview1 sock_shutdown
//go:noescape
func shutdown(fd int32, how int32) uint32

//go:wasmimport wasi_snapshot_preview1 path_open
//go:noescape
func open(fd int32, flags int32, path, n uint32, how int32, rights, inherited uint64, fdFlags int32, opened uint32) uint32

// wild calls what the module may call with what makes no sense, and says how that is answered.
func wild(string) any {
	const far, near, none = 0xffff_fff0, 1024, 99 // far is outside its memory, none is no descriptor
	for range 100 {
		accept(3, 0, far) // opens nothing
	}
	return fmt.Sprint(
		[]uint32{fdWrite(1, far, 1, near), fdWrite(1, near, 0, far), fdRead(0, far, 1, near), fdStat(0, far), fileStat(0, far), accept(3, 0, far)},
		[]uint32{poll(far, near, 1, near), poll(near, far, 1, near), poll(near, near, 0, near), poll(near, near, 1<<31, near)},
		[]uint32{fdWrite(none, near, 1, near), fdRead(-1, near, 1, near), fdStat(none, near), fileStat(none, near), fdClose(none), flush(none)},
		[]uint32{accept(1, 0, near), receive(none, near, 1, 0, near, near), send(none, near, 1, 0, near), shutdown(1, 1), shutdown(none, 1)},
		[]uint32{open(3, 0, near, 1, 0, 2, 0, 0, near), open(0, 0, near, 1, 0, 2, 0, 0, near), open(4, 0, near, 1, 0, 2, 0, 0, near)},
		[]uint32{renumber(1, 1<<30), seek(1, 0, 1, near), flush(1), prestat(3, near)},
		[]uint32{accept(3, 0, near), fdClose(4), fdClose(3), accept(3, 0, near)}, // the first connection is descriptor 4
	)
}
