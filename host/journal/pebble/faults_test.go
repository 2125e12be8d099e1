package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/heddle-live/heddle/host/journal"
	"github.com/heddle-live/heddle/host/journal/conformance"
)

// busy makes the store flush and compact within a test.
func busy(o *pebble.Options) {
	o.MemTableSize = 64 << 10
	o.L0CompactionThreshold = 2
}

// modelRecord is the record of a revision in the tests of faults: three facts
// come, one of an earlier revision goes, sometimes there is a program.
func modelRecord(revision uint64) *journal.Record {
	tuple := func(revision uint64) string { return fmt.Sprintf("%08d", revision) }
	r := conformance.Record(revision,
		conformance.Fact(1, tuple(revision)), conformance.Fact(2, tuple(revision)), conformance.Fact(3, tuple(revision)))
	if revision > 3 {
		r.Mutations = append(r.Mutations, conformance.Without(1, tuple(revision-3)))
	}
	if revision%10 == 1 {
		r.Program = []byte(tuple(revision))
	}
	r.Caller, r.IdempotencyKey, r.Answer = "model", tuple(revision), []byte(tuple(revision))
	r.Effective = revision%2 == 0
	return r
}

// checkModel holds a graph at its head against what modelRecord wrote.
func checkModel(t *testing.T, j journal.Journal, graph string) journal.Position {
	t.Helper()
	p, err := journal.Verify(t.Context(), j, graph)
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	var want []string
	for relation := 1; relation <= 3; relation++ {
		for revision := uint64(1); revision <= p.Revision; revision++ {
			if relation > 1 || revision+3 > p.Revision {
				want = append(want, fmt.Sprintf("%d:%08d", relation, revision))
			}
		}
	}
	if got := conformance.Facts(t, j, graph); !slices.Equal(got, want) {
		t.Fatalf("head %d: %d facts, want %d", p.Revision, len(got), len(want))
	}
	if p.Revision == 0 {
		return p
	}
	program, revision, err := j.Program(t.Context(), graph)
	if last := (p.Revision-1)/10*10 + 1; err != nil || revision != last || string(program) != fmt.Sprintf("%08d", last) {
		t.Fatalf("head %d: program %q of %d, %v", p.Revision, program, revision, err)
	}
	receipt, err := j.Idempotent(t.Context(), graph, "model", fmt.Sprintf("%08d", p.Revision))
	if err != nil || receipt == nil || receipt.Revision != p.Revision {
		t.Fatalf("head %d: receipt %+v, %v", p.Revision, receipt, err)
	}
	return p
}

// TestPowerCut cuts the power at a random moment and keeps a random share of
// what was not synced.
func TestPowerCut(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	fs := vfs.NewCrashableMem()
	openGraph(t, fs, "/j").Close()
	var acked uint64
	opening := uint64(0)
	for round := range 60 {
		j, err := Open("/j", Options{FS: fs, tune: busy})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		p := checkModel(t, j, "g")
		if p.Revision < acked {
			t.Fatalf("round %d: head %d, %d was acknowledged", round, p.Revision, acked)
		}
		q, err := j.Open(t.Context(), "g", conformance.Day)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if q.Opening <= opening {
			t.Fatalf("round %d: opening %d after %d", round, q.Opening, opening)
		}
		opening = q.Opening
		fs, acked = writeUntilCut(t, j, fs, rng, q.Revision)
	}
	t.Logf("%d records acknowledged, none lost", acked)
}

// writeUntilCut writes records from several of a batch to one, and clones the
// file system as a power cut leaves it while they are being written. It returns
// the clone and a revision that was acknowledged before.
func writeUntilCut(
	t *testing.T, j *Journal, fs *vfs.MemFS, rng *rand.Rand, revision uint64,
) (*vfs.MemFS, uint64) {
	var acked atomic.Uint64
	acked.Store(revision)
	var stop atomic.Bool
	target, enough, done := revision+uint64(rng.IntN(120)), make(chan struct{}), make(chan error, 1)
	batch := 1 + rng.IntN(3)
	go func() {
		reached := false
		for !stop.Load() {
			var records []*journal.Record
			for range batch {
				revision++
				records = append(records, modelRecord(revision))
			}
			if _, err := j.Append(t.Context(), "g", records); err != nil {
				done <- err
				return
			}
			acked.Store(revision)
			if !reached && revision >= target {
				reached = true
				close(enough)
			}
		}
		done <- nil
	}()
	<-enough
	sure := acked.Load()
	clone := fs.CrashClone(vfs.CrashCloneCfg{
		UnsyncedDataPercent: rng.IntN(101), RNG: rand.New(rand.NewPCG(rng.Uint64(), 2)),
	})
	stop.Store(true)
	if err := errors.Join(<-done, j.Close()); err != nil {
		t.Fatal(err)
	}
	return clone, sure
}

// damages are ways to harm the files that a killed process left.
var damages = []struct {
	name string
	harm func(t *testing.T, fs vfs.FS)
	want error // nil: opens at a verified head
}{
	{"nothing", func(*testing.T, vfs.FS) {}, nil},
	{"log cut by 7 bytes", onLog(func(b []byte) []byte { return b[:len(b)-7] }), nil},
	{"log with garbage behind", onLog(func(b []byte) []byte {
		return append(b, bytes.Repeat([]byte{0xa5, 7}, 2048)...)
	}), nil},
	{"log with zeros at its end", onLog(func(b []byte) []byte { clear(b[len(b)-512:]); return b }), nil},
	{"bit of the log flipped", onLog(flipMiddle), journal.ErrCorrupt},
	{"log deleted", onFile("store/*.log", nil), journal.ErrGap},
	{"bit of a table flipped", onFile("store/*.sst", flipMiddle), journal.ErrCorrupt},
	{"table deleted", onFile("store/*.sst", nil), journal.ErrCorrupt},
	{"bit of the manifest flipped", onFile("store/MANIFEST-*", flipMiddle), errEither},
	{"manifest deleted", onFile("store/MANIFEST-*", nil), journal.ErrCorrupt},
	{"whole store deleted", onFile("store/*", nil), journal.ErrGap},
	{"bit of the witness flipped", onFile("witness", flipMiddle), journal.ErrCorrupt},
	{"witness deleted", onFile("witness", nil), nil},
	{"head overwritten", onStore(set("g/g/h", []byte("x"))), journal.ErrCorrupt},
	{"head deleted", onStore(remove("g/g/h")), journal.ErrCorrupt},
	{"newest record deleted", onStore(func(db *pebble.DB) error {
		return db.DeleteRange(newGraph("g").recordKey(395), newGraph("g").recordKey(1000), nil)
	}), journal.ErrGap},
	{"oldest record deleted", onStore(remove(recordKey(1))), journal.ErrGap},
	{"record beyond the head", onStore(set(recordKey(401), unlinked(401))), journal.ErrCorrupt},
	{"newest record replaced", onStore(set(recordKey(400), unlinked(400))), journal.ErrCorrupt},
	{"record in the middle deleted", onStore(remove(recordKey(200))), journal.ErrGap},
	{"record in the middle replaced", onStore(set(recordKey(200), unlinked(200))), journal.ErrCorrupt},
	{"fact deleted", onStore(remove(factKey("00000007"))), journal.ErrCorrupt},
	{"fact added", onStore(set(factKey("x"), nil)), journal.ErrCorrupt},
	{"program deleted", onStore(remove(string(newGraph("g").programKey(391)))), journal.ErrCorrupt},
	{"key of no graph", onStore(set("g/a b/h", nil)), journal.ErrCorrupt},
	{"unknown format", onStore(set(formatKey, []byte("heddle-journal 9"))), journal.ErrFormat},
	{"no format", onStore(remove(formatKey)), journal.ErrCorrupt},
}

func set(key string, value []byte) func(*pebble.DB) error {
	return func(db *pebble.DB) error { return db.Set([]byte(key), value, nil) }
}

func remove(key string) func(*pebble.DB) error {
	return func(db *pebble.DB) error { return db.Delete([]byte(key), nil) }
}

func recordKey(revision uint64) string { return string(newGraph("g").recordKey(revision)) }

func factKey(tuple string) string {
	return string(appendFact(bytes.Clone(newGraph("g").facts), 2, []byte(tuple)))
}

// unlinked returns the bytes of a model record that follows nothing.
func unlinked(revision uint64) []byte {
	return journal.AppendRecord(nil, &journal.Hash{}, modelRecord(revision))
}

// TestDamage harms the files that a killed process left. The journal opens at a
// head that is verified or refuses, and then says what, where and what to do.
func TestDamage(t *testing.T) {
	for _, test := range damages {
		t.Run(test.name, func(t *testing.T) {
			fs := killedStore(t)
			test.harm(t, fs)
			p, err := openHarmed(t, fs)
			switch {
			case test.want == errEither && (err == nil || errors.Is(err, journal.ErrCorrupt)):
				t.Log(p.Revision, err)
			case test.want == nil && err != nil:
				t.Fatalf("refused: %v", err)
			case test.want == nil:
				t.Logf("opened at revision %d", p.Revision)
			case !errors.Is(err, test.want):
				t.Fatalf("error %v, want %v", err, test.want)
			default:
				t.Log(err)
				checkSaysWhatToDo(t, err)
			}
		})
	}
}

// errEither: logs that are still there make up for the damage, or it is named.
var errEither = errors.New("verified or damaged")

// TestDamageAnywhere flips random bits of random files.
func TestDamageAnywhere(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	refused := 0
	for range 60 {
		fs := killedStore(t)
		names := glob(t, fs, "store/*")
		name := names[rng.IntN(len(names))]
		rewrite(t, fs, name, func(b []byte) []byte {
			if len(b) > 0 {
				b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
			}
			return b
		})
		if _, err := openHarmed(t, fs); err != nil {
			refused++
			if left := glob(t, fs, "store/*"); !containsData(left, names) {
				t.Fatalf("%s: files were removed by a journal that refused: %q of %q", name, left, names)
			}
			if name != "/j/store/LOCK" && !errors.Is(err, journal.ErrCorrupt) && !errors.Is(err, journal.ErrGap) {
				t.Logf("%s: refused without naming damage: %v", name, err)
			}
		}
	}
	t.Logf("refused %d of 60, the others opened at a verified head", refused)
}

// containsData reports whether all tables of names are left. Logs may go: what
// they held is in tables, and whether all tables are sound shows later.
func containsData(left, names []string) bool {
	for _, name := range names {
		if path.Ext(name) == ".sst" && !slices.Contains(left, name) {
			return false
		}
	}
	return true
}

func checkSaysWhatToDo(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, journal.ErrFormat) {
		return
	}
	damage, ok := errors.AsType[*journal.DamageError](err)
	if !ok {
		t.Fatalf("%v is no DamageError", err)
	}
	if damage.Where == "" || damage.Remedy == "" || damage.What == "" && damage.Cause == nil {
		t.Errorf("it does not say what, where and what to do: %+v", damage)
	}
}

// killedStore returns the files of a journal whose process was killed at
// revision 400 in its second opening, all writes synced.
func killedStore(t *testing.T) vfs.FS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	j := openGraph(t, fs, "/j")
	write := func(from, to uint64) {
		for r := from; r <= to; r++ {
			if _, err := j.Append(t.Context(), "g", []*journal.Record{modelRecord(r)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(1, 200)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, err := Open("/j", Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if _, err := j.Open(t.Context(), "g", conformance.Day); err != nil {
		t.Fatal(err)
	}
	write(201, 400)
	return fs.CrashClone(vfs.CrashCloneCfg{})
}

// openHarmed opens everything there is, and checks it if it opens.
func openHarmed(t *testing.T, fs vfs.FS) (journal.Position, error) {
	t.Helper()
	fatal := make(chan error, 16)
	j, err := Open("/j", Options{FS: fs, Fatal: func(err error) { fatal <- err }})
	if err != nil {
		return journal.Position{}, err
	}
	defer j.Close()
	p, err := j.Open(t.Context(), "g", conformance.Day)
	if err != nil {
		return p, err
	}
	if _, err := journal.Verify(t.Context(), j, "g"); err != nil {
		return p, err
	}
	checkModel(t, j, "g")
	if len(fatal) > 0 {
		t.Errorf("fatal: %v", <-fatal)
	}
	return p, nil
}

func flipMiddle(b []byte) []byte {
	b[len(b)/2] ^= 4
	return b
}

// onLog changes the newest log, without the zeros that it was made with.
func onLog(change func([]byte) []byte) func(*testing.T, vfs.FS) {
	return onFile("store/*.log", func(b []byte) []byte { return change(bytes.TrimRight(b, "\x00")) })
}

// onFile changes the newest file that matches, or deletes all if change is nil.
func onFile(pattern string, change func([]byte) []byte) func(*testing.T, vfs.FS) {
	return func(t *testing.T, fs vfs.FS) {
		names := glob(t, fs, pattern)
		if len(names) == 0 {
			t.Fatalf("no file %s", pattern)
		}
		if change != nil {
			rewrite(t, fs, names[len(names)-1], change)
			return
		}
		for _, name := range names {
			if err := fs.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// onStore changes keys behind the journal's back.
func onStore(change func(*pebble.DB) error) func(*testing.T, vfs.FS) {
	return func(t *testing.T, fs vfs.FS) {
		db, err := pebble.Open("/j/store", &pebble.Options{FS: fs, FormatMajorVersion: storeFormat})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(change(db), db.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func glob(t *testing.T, fs vfs.FS, pattern string) []string {
	t.Helper()
	dir := path.Join("/j", path.Dir(pattern))
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var matching []string
	for _, name := range names {
		if ok, err := path.Match(path.Base(pattern), name); err == nil && ok {
			matching = append(matching, path.Join(dir, name))
		}
	}
	slices.Sort(matching)
	return matching
}

func rewrite(t *testing.T, fs vfs.FS, name string, change func([]byte) []byte) {
	t.Helper()
	b, err := readFile(fs, name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(change(b))
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestAcceptedLoss: who removes the witness goes on above all lost sequences.
func TestAcceptedLoss(t *testing.T) {
	fs := killedStore(t)
	onFile("store/*.log", nil)(t, fs)
	onFile("witness", nil)(t, fs)
	p, err := openHarmed(t, fs)
	if err != nil {
		t.Fatal(err)
	}
	if p.Revision != 200 || p.Opening != 2526+journal.OpeningsPerRestore+1 {
		t.Errorf("went on at revision %d, opening %d", p.Revision, p.Opening)
	}
}

// TestSyncError: an fsync that fails ends the process within a second, and
// nothing is acknowledged any more.
func TestSyncError(t *testing.T) {
	for _, test := range []struct {
		name string
		ops  []errorfs.OpKind
		err  error
	}{
		{"sync", []errorfs.OpKind{errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo}, syscall.EIO},
		{"write", []errorfs.OpKind{errorfs.OpFileWrite}, syscall.ENOSPC},
	} {
		t.Run(test.name, func(t *testing.T) {
			fault := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
				if strings.HasSuffix(op.Path, ".log") && slices.Contains(test.ops, op.Kind) {
					return test.err
				}
				return nil
			})}
			fatal, acked := make(chan error, 1), make(chan error, 1)
			j, err := Open("/j", Options{
				FS: errorfs.Wrap(vfs.NewMem(), fault), Fatal: func(err error) { fatal <- err },
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, graph := range []string{"g", "h"} {
				if err := j.Create(t.Context(), graph); err != nil {
					t.Fatal(err)
				}
				if _, err := j.Open(t.Context(), graph, conformance.Day); err != nil {
					t.Fatal(err)
				}
			}
			fault.On()
			go func() {
				_, err := j.Append(t.Context(), "g", []*journal.Record{modelRecord(1)})
				acked <- err
			}()
			select {
			case err := <-fatal:
				if !errors.Is(err, journal.ErrFailed) {
					t.Errorf("fatal error %v", err)
				}
			case <-time.After(time.Second):
				t.Fatal("no fatal error within a second")
			}
			fault.Off()
			_, err = j.Append(t.Context(), "h", []*journal.Record{modelRecord(1)})
			if !errors.Is(err, journal.ErrFailed) {
				t.Errorf("append to another graph on a disk that is well again: %v", err)
			}
			if err := j.Close(); !errors.Is(err, journal.ErrFailed) {
				t.Errorf("close: %v", err)
			}
			select {
			case err := <-acked:
				t.Errorf("the append came back: %v", err)
			default:
			}
		})
	}
}

// TestDropFails: a drop that cannot write the witness leaves the graph whole,
// and the next one succeeds and is remembered through a power cut.
func TestDropFails(t *testing.T) {
	fault := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, "witness.new") {
			return syscall.EIO
		}
		return nil
	})}
	below := vfs.NewCrashableMem()
	j := openGraph(t, errorfs.Wrap(below, fault), "/j")
	fault.On()
	if err := j.Drop(t.Context(), "g"); !errors.Is(err, syscall.EIO) {
		t.Errorf("drop: %v", err)
	}
	fault.Off()
	if _, err := j.Append(t.Context(), "g", []*journal.Record{modelRecord(1)}); err != nil {
		t.Fatal(err)
	}
	checkModel(t, j, "g")
	if err := j.Drop(t.Context(), "g"); err != nil {
		t.Fatal(err)
	}
	after, err := Open("/j", Options{FS: below.CrashClone(vfs.CrashCloneCfg{})})
	if err != nil {
		t.Fatal(err)
	}
	if names, err := after.Graphs(t.Context()); err != nil || len(names) > 0 {
		t.Errorf("graphs after the drop: %q, %v", names, err)
	}
	if err := errors.Join(j.Close(), after.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestSpace: below the floor nothing is written, above it everything goes on.
func TestSpace(t *testing.T) {
	fs := vfs.NewMem()
	fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 5000, TotalBytes: 9000})
	j, err := Open("/j", Options{FS: fs, FreeSpaceFloorBytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := j.Create(t.Context(), "g"); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Open(t.Context(), "g", conformance.Day); err != nil {
		t.Fatal(err)
	}
	setFree := func(n uint64) {
		fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: n, TotalBytes: 9000})
		j.space.checked.Store(0)
	}
	write := func(revision uint64) error {
		_, err := j.Append(t.Context(), "g", []*journal.Record{modelRecord(revision)})
		return err
	}
	if err := write(1); err != nil {
		t.Fatal(err)
	}
	setFree(999)
	if err := write(2); !errors.Is(err, journal.ErrFull) {
		t.Errorf("append below the floor: %v", err)
	}
	if free, err := j.Free(); err != nil || free != 999 {
		t.Errorf("free: %d, %v", free, err)
	}
	checkModel(t, j, "g")
	if err := j.Trim(t.Context(), "g", 1); err != nil {
		t.Errorf("trim below the floor: %v", err)
	}
	if _, err := j.Open(t.Context(), "g", conformance.Day); err != nil {
		t.Errorf("open below the floor, as after a restart: %v", err)
	}
	setFree(1000)
	if err := write(2); err != nil {
		t.Errorf("append after space came back: %v", err)
	}
	checkModel(t, j, "g")
}

// TestNoSpaceToOpen: a store on a disk that is all but full is not opened.
func TestNoSpaceToOpen(t *testing.T) {
	fs := vfs.NewMem()
	fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 10 << 20, TotalBytes: 1 << 30})
	_, err := Open("/j", Options{FS: fs, FreeSpaceFloorBytes: 256 << 20})
	if !errors.Is(err, journal.ErrFull) || !strings.Contains(err.Error(), "make room") {
		t.Errorf("open with 10 MiB free: %v", err)
	}
	j, err := Open("/j", Options{FS: fs}) // no floor, no limit
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestLockedByThisProcess(t *testing.T) {
	dir := t.TempDir()
	j := openGraph(t, nil, dir)
	_, err := Open(dir, Options{})
	if !errors.Is(err, journal.ErrLocked) || !strings.Contains(err.Error(), "pebble.test") {
		t.Errorf("second open: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, err = Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestNoDirectory(t *testing.T) {
	_, err := Open("/dev/null/journal", Options{})
	if err == nil || errors.Is(err, journal.ErrLocked) || !strings.Contains(err.Error(), "/dev/null/journal") {
		t.Errorf("open below a file: %v", err)
	}
}
