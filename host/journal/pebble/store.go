package pebble

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/heddle-live/heddle/host/journal"
)

// exitFatal is the process's exit status after a failed write: EX_SOFTWARE.
const exitFatal = 70

// storeLogger hands the store's messages to the journal's logger.
type storeLogger struct{ j *Journal }

func (l storeLogger) Infof(format string, args ...any) {
	l.j.logger.Debug("journal store: " + fmt.Sprintf(format, args...))
}

func (l storeLogger) Errorf(format string, args ...any) {
	l.j.logger.Error("journal store: " + fmt.Sprintf(format, args...))
}

// Fatalf is called by the store when it cannot go on. It does not return: the
// caller's state is undefined.
func (l storeLogger) Fatalf(format string, args ...any) {
	err := fmt.Errorf("%w: %s: %s", journal.ErrFailed, l.j.dir, fmt.Sprintf(format, args...))
	if !l.j.failed.CompareAndSwap(nil, &err) {
		select {} // somebody is ending the process already
	}
	l.j.logger.Error("journal: a write failed and its outcome is unknown; "+
		"the process ends, and its next start recovers from the log", "error", err)
	l.j.fatal(err)
	select {}
}

// listener reports what an operator should know of.
func (j *Journal) listener() *pebble.EventListener {
	return &pebble.EventListener{
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			err := j.damage(journal.ErrCorrupt, "", info.Path, "", info.Details)
			j.damaged.CompareAndSwap(nil, &err)
			j.logger.Error("journal: a file is damaged; no more is written", "error", err)
		},
		BackgroundError: func(err error) {
			// The store tries again at once, thousands of times a second.
			now := time.Now().UnixNano()
			if last := j.complained.Load(); now-last >= int64(time.Second) &&
				j.complained.CompareAndSwap(last, now) {
				j.logger.Error("journal: background work of the store fails", "error", err)
			}
		},
		DiskSlow: func(info pebble.DiskSlowInfo) {
			j.logger.Warn("journal: the disk is slow", "operation", info.OpType.String(),
				"file", info.Path, "duration", info.Duration)
		},
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			j.logger.Warn("journal: writes wait for background work", "reason", info.Reason)
		},
	}
}

// failure returns the error after which nothing may be written any more.
func (j *Journal) failure() error {
	if err := j.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// sound returns why nothing may be written until the process starts anew, or nil.
func (j *Journal) sound() error {
	if err := j.failure(); err != nil {
		return err
	}
	if err := j.damaged.Load(); err != nil {
		return *err
	}
	return nil
}

// mayWrite returns why nothing may be written now, or nil.
func (j *Journal) mayWrite() error {
	if err := j.sound(); err != nil {
		return err
	}
	return j.space.check(time.Now())
}

// damage returns a *journal.DamageError about this journal.
func (j *Journal) damage(kind error, graph, where, what string, cause error) error {
	return &journal.DamageError{
		Kind: kind, Graph: graph, Where: where, What: what, Cause: cause,
		Remedy: fmt.Sprintf("keep a copy of %s as it is, and restore it from a backup", j.dir),
	}
}

// readError tells damage of the store's files from other errors.
func (j *Journal) readError(graph, where string, err error) error {
	if !pebble.IsCorruptionError(err) {
		return fmt.Errorf("read %s: %w", where, err)
	}
	what := ""
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil {
		what = "file " + info.Path
	}
	return j.damage(journal.ErrCorrupt, graph, where, what, err)
}

// storeError is readError for what concerns no graph.
func (j *Journal) storeError(err error) error {
	if pebble.IsCorruptionError(err) {
		return j.damage(journal.ErrCorrupt, "", "the store", "", err)
	}
	if errors.Is(err, os.ErrNotExist) {
		return j.damage(journal.ErrCorrupt, "", "the store", "a file is missing", err)
	}
	return fmt.Errorf("store: %w", err)
}

// makeDirs makes a directory and those above it, and syncs the entry of each
// that is new: a store in a directory that a power cut forgets is lost.
func makeDirs(fs vfs.FS, dir string) error {
	var parents []string
	for d := dir; ; d = fs.PathDir(d) {
		if _, err := fs.Stat(d); err == nil || fs.PathDir(d) == d {
			break
		} else if !errors.Is(err, os.ErrNotExist) {
			return err
		}
		parents = append(parents, fs.PathDir(d))
	}
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, parent := range parents {
		if err := syncDir(fs, parent); err != nil {
			return err
		}
	}
	return nil
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// holderName is the file that says who holds the lock.
const holderName = "holder"

// takeLock locks the store and says so in the holder file.
func (j *Journal) takeLock(store string) error {
	lock, err := pebble.LockDirectory(store, j.fs)
	if err != nil {
		// Failing to make the lock file names a path; a lock that is held does not.
		if pathErr := (*os.PathError)(nil); errors.As(err, &pathErr) {
			return fmt.Errorf("lock: %w", err)
		}
		holder := "another process"
		if b, err := readFile(j.fs, j.fs.PathJoin(j.dir, holderName)); err == nil && len(b) > 0 {
			holder = strings.TrimSpace(string(b))
		}
		return fmt.Errorf("%w (%s); stop it, or use another data directory",
			journal.ErrLocked, holder)
	}
	j.lock = lock
	holder := fmt.Sprintf("process %d, %s\n", os.Getpid(), filepath.Base(os.Args[0]))
	// Only a hint for people, so it need not survive a crash.
	f, err := j.fs.Create(j.fs.PathJoin(j.dir, holderName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return errors.Join(fmt.Errorf("holder file: %w", err), j.release())
	}
	_, err = f.Write([]byte(holder))
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("holder file: %w", err), j.release())
	}
	return nil
}

func (j *Journal) dropHolder() error {
	err := j.fs.Remove(j.fs.PathJoin(j.dir, holderName))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// readFile reads a small file whole; at most fileBytesMax.
func readFile(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, fileBytesMax))
	return b, errors.Join(err, f.Close())
}

const fileBytesMax = 16 << 20

// spaceCheckInterval is how old a measurement of free space may be.
const spaceCheckInterval = 250 * time.Millisecond

// openBytesMin is the free space without which a store is not opened, however
// high the floor is.
const openBytesMin = 16 << 20

// space watches the free space of the journal's file system.
type space struct {
	fs         vfs.FS
	dir        string
	floorBytes uint64
	checked    atomic.Int64 // when last measured, nanoseconds since 1970
	low        atomic.Bool
}

// Free returns the bytes left in the file system for this process's user. It
// returns an error if the file system cannot tell.
func (j *Journal) Free() (uint64, error) {
	usage, err := j.fs.GetDiskUsage(j.dir)
	if err != nil {
		return 0, fmt.Errorf("free space of %s: %w", j.dir, err)
	}
	return usage.AvailBytes, nil
}

// checkOpen refuses to open a store on a disk that is all but full: its log could
// not be turned into tables, which it would try without end.
func (s *space) checkOpen() error {
	need := min(s.floorBytes, openBytesMin)
	usage, err := s.fs.GetDiskUsage(s.dir)
	if err != nil || usage.AvailBytes >= need {
		return nil // a file system that cannot tell has no floor
	}
	return fmt.Errorf("%w: %d bytes are free in %s, and opening needs %d: make room, "+
		"then start again", journal.ErrFull, usage.AvailBytes, s.dir, need)
}

// check returns journal.ErrFull while less than the floor is free. A file system
// that cannot tell has no floor.
func (s *space) check(now time.Time) error {
	if s.floorBytes == 0 {
		return nil
	}
	if since := now.UnixNano() - s.checked.Load(); since < 0 || since >= int64(spaceCheckInterval) {
		usage, err := s.fs.GetDiskUsage(s.dir)
		s.low.Store(err == nil && usage.AvailBytes < s.floorBytes)
		s.checked.Store(now.UnixNano())
	}
	if s.low.Load() {
		return fmt.Errorf("%w: less than %d bytes are free in %s",
			journal.ErrFull, s.floorBytes, s.dir)
	}
	return nil
}
