package views_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/host/ingest"
	"github.com/heddle-live/heddle/host/journal/pebble"
	"github.com/heddle-live/heddle/host/views"
	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/lite"
	"github.com/heddle-live/heddle/protocol/moq"
	"github.com/heddle-live/heddle/protocol/wire"
	"github.com/heddle-live/heddle/sdk/frame"
)

const program = `+edge(src: int, dst: int)
+name(node: int, text: string)
view out($x: int) := ?edge($x, Y)
view named($t: string, $min: int) := ?name(N, $t), N > $min
view back($y: int) := ?edge(X, $y)
`

// fixture is a graph "g" served from a real loop and journal.
type fixture struct {
	t         *testing.T
	directory *views.Directory
	graph     *views.Graph
	loop      *ingest.Loop
	metrics   views.Metrics
	origin    lite.Origin
	stop      func()

	// Each look at the monotonic clock sets it forward by step nanoseconds.
	step, skew atomic.Int64
}

func start(t *testing.T, adjust ...func(*views.Config)) *fixture {
	t.Helper()
	f := &fixture{t: t}
	cfg := views.Config{
		Linger: 2 * time.Second, MaxLatency: time.Second, KeysMax: 100, PartBytes: 256 << 10,
		WatchSteps: 1_000_000,
		Now:        time.Now, Logger: slog.New(slog.DiscardHandler), Metrics: &f.metrics,
	}
	for _, a := range adjust {
		a(&cfg)
	}
	store, err := pebble.Open(filepath.Join(t.TempDir(), "journal"),
		pebble.Options{Logger: cfg.Logger})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Create(t.Context(), "g"); err != nil {
		t.Fatal(err)
	}
	f.directory = views.New(cfg)
	f.graph = f.directory.NewGraph("g")
	began := time.Now()
	f.loop, err = ingest.Open(t.Context(), ingest.Config{
		Graph: "g", Journal: store, Publisher: f.graph, Now: time.Now,
		Nanos:             func() int64 { return int64(time.Since(began)) + f.skew.Add(f.step.Load()) },
		QueueTransactions: 64, BatchTransactions: 16, JournalRecords: 1000,
		QuerySteps: 1_000_000, Logger: cfg.Logger,
	})
	if err != nil {
		t.Fatal(err)
	}
	f.directory.Serve(f.graph, f.loop)
	f.origin = f.directory.Origin(views.AllGrants(""))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.loop.Run(ctx) }()
	f.stop = func() {
		if f.stop = func() {}; true {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("loop: %v", err)
			}
			if err := store.Close(); err != nil {
				t.Errorf("journal: %v", err)
			}
		}
	}
	t.Cleanup(func() { f.stop() })
	f.apply(program)
	return f
}

func (f *fixture) apply(source string) {
	f.t.Helper()
	_, err := f.loop.Apply(f.t.Context(), source, ingest.ApplyOptions{AllowLoss: true})
	if err != nil {
		f.t.Fatalf("apply: %v", err)
	}
}

func (f *fixture) write(text string) {
	f.t.Helper()
	parsed, err := parse.Transaction(text)
	if err != nil {
		f.t.Fatal(err)
	}
	p := f.loop.Program()
	statements, err := analysis.CheckTransaction(p, parsed)
	if err != nil {
		f.t.Fatal(err)
	}
	tx := ingest.Transaction{Program: p, Statements: statements}
	if _, err := f.loop.Transact(f.t.Context(), tx); err != nil {
		f.t.Fatal(err)
	}
}

// settle waits until the loop has done everything that was queued, and ticks and
// tidies at the given distance from now.
func (f *fixture) settle(after time.Duration) {
	f.t.Helper()
	if err := f.loop.Call(f.t.Context(), func(t *ingest.Turn) {
		now := time.Now().Add(after)
		f.graph.Tick(t, now)
		for f.graph.Tidy(t, now) {
		}
	}); err != nil {
		f.t.Fatal(err)
	}
}

// viewer reads one track as a client does.
type viewer struct {
	f       *fixture
	cursor  *moq.Cursor
	release func()
	state   frame.State
	meta    *frame.Meta
	log     []string // one line for each frame
	last    moq.Step
}

func (f *fixture) view(broadcast, track string) *viewer {
	f.t.Helper()
	v, err := f.tryView(broadcast, track)
	if err != nil {
		f.t.Fatalf("subscribe to %s %s: %v", broadcast, track, err)
	}
	return v
}

func (f *fixture) tryView(broadcast, track string) (*viewer, error) {
	t, release, err := f.origin.Subscribe(f.t.Context(), protocol.Path(broadcast), track)
	if err != nil {
		return nil, err
	}
	v := &viewer{f: f, cursor: t.NewCursor(func() {}), release: release}
	f.t.Cleanup(v.cursor.Close)
	f.settle(0)
	v.read()
	return v, nil
}

func (v *viewer) leave() {
	v.cursor.Close()
	v.release()
}

// read takes what is new and appends a line to the log for each frame.
func (v *viewer) read() {
	v.f.t.Helper()
	b, step := v.cursor.Take(nil)
	v.last = step
	if step.Shared != nil {
		b = append(b, step.Shared...)
		v.cursor.Release()
	}
	for index := uint64(0); len(b) > 0; index++ {
		_, payload, n, err := wire.ParseFrame(b)
		if err != nil {
			v.f.t.Fatal(err)
		}
		b = b[n:]
		fr, err := frame.ParseFrame(payload, v.meta)
		if err != nil {
			v.f.t.Fatalf("frame %s: %v", payload, err)
		}
		c := v.state.Apply(step.Sequence, index, fr)
		line := fmt.Sprintf("%v +%v -%v", c.Outcome, c.Entered, c.Left)
		if c.Closed != nil {
			line += " closed " + c.Closed.Code
		}
		v.log = append(v.log, line)
	}
}

func (v *viewer) expectRows(want string) {
	v.f.t.Helper()
	v.read()
	if got := fmt.Sprint(v.state.Rows()); got != want {
		v.f.t.Errorf("rows %s, want %s; log %q", got, want, v.log)
	}
}

func TestBothWaysToAKeyAreOneView(t *testing.T) {
	f := start(t)
	f.write("+edge(400, 1)")
	byPath := f.view("g/out/400", "rows")
	byTrack := f.view("g/out", "rows/400")
	if n := f.metrics.WatchedKeys.Load(); n != 1 {
		t.Errorf("%d watched keys for one key", n)
	}
	if n := f.metrics.Viewers.Load(); n != 2 {
		t.Errorf("%d viewers", n)
	}
	f.write("-edge(400, 1)\n+edge(400, 2)\n+edge(7, 7)")
	for _, v := range []*viewer{byPath, byTrack} {
		v.expectRows("[[400 2]]")
		want := []string{"applied +[[400 1]] -[]", "applied +[[400 2]] -[[400 1]]"}
		if !slices.Equal(v.log, want) {
			t.Errorf("frames %q, want %q", v.log, want)
		}
	}
	groups := f.metrics.Groups.Load()
	f.write("+edge(8, 8)")
	if n := f.metrics.Groups.Load(); n != groups {
		t.Errorf("a write to another key published %d groups", n-groups)
	}
}

func TestSeveralParameters(t *testing.T) {
	f := start(t)
	f.write(`+name[(1, "a b"), (9, "a b"), (9, "c")]`)
	v := f.view("g/named/a~20b/5", "rows")
	v.expectRows(`[[9 a b]]`)
	back := f.view("g/back/2", "rows")
	back.expectRows("[]")
	f.write(`+name(7, "a b")` + "\n+edge(1, 2)")
	v.expectRows(`[[7 a b] [9 a b]]`)
	back.expectRows("[[1 2]]")
}

func TestRefusedNames(t *testing.T) {
	f := start(t)
	for _, c := range []struct{ broadcast, track string }{
		{"", "rows"},
		{"g", "rows"},
		{"g", "progress"},
		{"nosuch/out/1", "rows"},
		{"g/nosuch/1", "rows"},
		{"g/out", "rows"},
		{"g/out", "rows/"},
		{"g/out", "rows/1/2"},
		{"g/out", "rows/1,2"},
		{"g/out", "rows/01"},
		{"g/out", "rows/+1"},
		{"g/out", "rows/1.0"},
		{"g/out", "rows/x"},
		{"g/out", "rows/9223372036854775808"},
		{"g/out", "row/1"},
		{"g/out", ""},
		{"g/out/1", "rows/1"},
		{"g/out/1/2", "rows"},
		{"g/out/x", "meta"},
		{"g/named/a%20b/5", "rows"},
		{"g/named/a~2Fb/5", "rows"},
		{"g/named/a", "rows"},
		{".query", "rows"},
	} {
		for _, ask := range []string{"info", "subscribe"} {
			var err error
			if ask == "info" {
				_, err = f.origin.Info(t.Context(), protocol.Path(c.broadcast), c.track)
			} else {
				_, _, err = f.origin.Subscribe(t.Context(), protocol.Path(c.broadcast), c.track)
			}
			var refused *protocol.StreamError
			if !errors.As(err, &refused) || refused.Code != protocol.CodeNotFound {
				t.Errorf("%s %q %q: %v", ask, c.broadcast, c.track, err)
			}
		}
	}
	if n := f.metrics.WatchedKeys.Load(); n != 0 {
		t.Errorf("%d keys are watched after refusals", n)
	}
}

func TestGrants(t *testing.T) {
	f := start(t)
	scoped := f.directory.Origin(views.Grants{Subscribe: []protocol.Path{"g/out/400"}})
	if _, err := scoped.Info(t.Context(), "g/out/400", "rows"); err != nil {
		t.Errorf("the granted key: %v", err)
	}
	for _, c := range []struct{ broadcast, track string }{
		{"g/out/401", "rows"}, {"g/out", "rows/400"}, {"g/back/1", "rows"},
	} {
		if _, err := scoped.Info(t.Context(), protocol.Path(c.broadcast), c.track); err == nil {
			t.Errorf("%v is not granted and was served", c)
		}
	}
	if got := announced(t, scoped, ""); got != "g/out" {
		t.Errorf("announced %q", got)
	}
	rooted := f.directory.Origin(views.AllGrants("g/out"))
	if _, err := rooted.Info(t.Context(), "400", "rows"); err != nil {
		t.Errorf("below the session's root: %v", err)
	}
	if _, err := rooted.Info(t.Context(), "g/out/400", "rows"); err == nil {
		t.Error("a path from the top was taken below a root")
	}
}

func TestLinger(t *testing.T) {
	f := start(t)
	f.write("+edge(1, 2)")
	v := f.view("g/out/1", "rows")
	first := v.last.Sequence
	v.leave()
	v.release() // a second time: no effect
	f.settle(time.Second)
	if n := f.metrics.WatchedKeys.Load(); n != 1 {
		t.Errorf("%d watched keys one second after the last viewer left", n)
	}
	again := f.view("g/out/1", "rows")
	if again.last.Sequence != first {
		t.Errorf("group %d within the linger, want the kept one, %d", again.last.Sequence, first)
	}
	f.settle(time.Hour)
	if n := f.metrics.WatchedKeys.Load(); n != 1 {
		t.Errorf("a viewed key was swept")
	}
	again.leave()
	f.settle(time.Hour)
	if w, v := f.metrics.WatchedKeys.Load(), f.metrics.Viewers.Load(); w != 0 || v != 0 {
		t.Errorf("%d watched keys, %d viewers at the end", w, v)
	}
	third := f.view("g/out/1", "rows")
	if third.last.Sequence <= first {
		t.Errorf("sequence %d of a new watch is not above %d", third.last.Sequence, first)
	}
	third.expectRows("[[1 2]]")
}

func TestLargeResultComesInParts(t *testing.T) {
	const partBytes = 512
	f := start(t, func(c *views.Config) { c.PartBytes = partBytes })
	v := f.view("g/out/1", "rows")
	var facts, want []string
	for i := range 200 {
		facts = append(facts, fmt.Sprintf("(1, %d)", 1000+i))
		want = append(want, fmt.Sprintf("[1 %d]", 1000+i))
	}
	f.write("+edge[" + strings.Join(facts, ", ") + "]")
	v.expectRows("[" + strings.Join(want, " ") + "]")
	if n := len(v.log) - 1; n < 5 {
		t.Errorf("200 rows came in %d frames", n)
	}
	f.write("-edge(1, 1100)")
	v.read()
	if got := v.log[len(v.log)-1]; got != "applied +[] -[[1 1100]]" {
		t.Errorf("the change of a large result: %s", got)
	}
	late := f.view("g/out", "rows/1")
	if n := len(late.state.Rows()); n != 199 {
		t.Errorf("a late joiner has %d rows", n)
	}
}

func TestRuleChangeReachesViewersAsADifference(t *testing.T) {
	f := start(t)
	f.write("+edge[(1, 2), (1, 30)]")
	v := f.view("g/out/1", "rows")
	f.apply(strings.Replace(program, "?edge($x, Y)", "?edge($x, Y), Y > 10", 1))
	v.read()
	if got := v.log[len(v.log)-1]; got != "applied +[] -[[1 2]]" {
		t.Errorf("after the rule changed: %s", got)
	}
	f.write("+edge[(1, 3), (1, 31)]")
	v.read()
	if got := v.log[len(v.log)-1]; got != "applied +[[1 31]] -[]" {
		t.Errorf("the next write: %s", got)
	}
}

func TestDroppedAndChangedViewsEndWithAReason(t *testing.T) {
	for _, c := range []struct {
		name, next string
		closed     string
		code       protocol.StreamCode
	}{
		{"dropped", "+edge(src: int, dst: int)\n", frame.ClosedViewDropped, protocol.CodeViewDropped},
		{
			"columns", "+edge(src: int, dst: int)\nview out($x: int) := ?edge($x, Y), edge(Y, Z)\n",
			frame.ClosedViewChanged, protocol.CodeViewChanged,
		},
		{
			"parameters", "+edge(src: int, dst: int)\nview out($x: int, $y: int) := ?edge($x, $y)\n",
			frame.ClosedViewChanged, protocol.CodeViewChanged,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := start(t)
			f.write("+edge(1, 2)")
			v := f.view("g/out/1", "rows")
			f.apply(c.next)
			v.read()
			if got := v.log[len(v.log)-1]; !strings.HasSuffix(got, "closed "+c.closed) {
				t.Errorf("last frame: %s", got)
			}
			f.settle(time.Second)
			v.read()
			if v.last.Kind != moq.Aborted || v.last.Code != c.code {
				t.Errorf("the track's end: %+v", v.last)
			}
			v.leave()
			f.write("+edge(1, 3)")
			f.settle(time.Hour)
			if w, n := f.metrics.WatchedKeys.Load(), f.metrics.Viewers.Load(); w != 0 || n != 0 {
				t.Errorf("%d watched keys, %d viewers", w, n)
			}
		})
	}
}

func TestKeyLimit(t *testing.T) {
	f := start(t, func(c *views.Config) { c.KeysMax = 2 })
	f.view("g/out/1", "rows")
	f.view("g/out/2", "rows")
	_, err := f.tryView("g/out/3", "rows")
	var refused *protocol.StreamError
	if !errors.As(err, &refused) || refused.Code != protocol.CodeBusy {
		t.Errorf("a key over the limit: %v", err)
	}
	f.view("g/out/2", "rows") // a watched key takes further viewers
}

func TestTooLargeResultEndsItsTrackOnly(t *testing.T) {
	f := start(t)
	v := f.view(`g/named/x/0`, "rows")
	other := f.view("g/out/1", "rows")
	big := strings.Repeat("y", 200<<10)
	f.write(fmt.Sprintf(`+name(1, "%s")`, big))
	f.apply(strings.Replace(program, "view named($t: string, $min: int) := ?name(N, $t), N > $min",
		"view named($t: string, $min: int) := ?name(N, $t), N > $min\n"+
			"view texts($n: int) := ?name(N, T), N > $n", 1))
	var facts []string
	for i := range 90 {
		facts = append(facts, fmt.Sprintf(`(%d, "%s")`, 100+i, big))
	}
	w := f.view("g/texts/50", "rows")
	for chunk := range slices.Chunk(facts, 4) {
		f.write("+name[" + strings.Join(chunk, ", ") + "]")
	}
	w.expectClosed(frame.ClosedTooLarge, protocol.CodeFrameTooLarge)
	late := f.view("g/texts/51", "rows") // too large from the first group on
	late.expectClosed(frame.ClosedTooLarge, protocol.CodeFrameTooLarge)
	f.write(`-name(100, "` + big + `")`) // nothing of the ended keys is left to meet it
	f.write("+edge(1, 2)")
	other.expectRows("[[1 2]]")
	v.expectRows("[]")
}

// expectClosed expects a last frame with a reason, then a reset.
func (v *viewer) expectClosed(reason string, code protocol.StreamCode) {
	v.f.t.Helper()
	v.read()
	if n := len(v.log); n == 0 || !strings.HasSuffix(v.log[n-1], "closed "+reason) {
		v.f.t.Errorf("the last frame of %q is not closed with %s", v.log, reason)
	}
	v.f.settle(time.Second)
	v.read()
	if v.last.Kind != moq.Aborted || v.last.Code != code {
		v.f.t.Errorf("the track's end: %+v, want code %d", v.last, code)
	}
}

func TestTooExpensiveKeyIsRefused(t *testing.T) {
	f := start(t, func(c *views.Config) { c.WatchSteps = 1000 })
	var facts []string
	for i := range 500 {
		facts = append(facts, fmt.Sprintf("(%d, %d)", i, i%2))
	}
	f.write("+edge[" + strings.Join(facts, ", ") + "]")
	f.apply(program + "view pairs($x: int) := ?edge($x, Y), edge(A, Y), edge(B, Y), A < B\n")
	f.view("g/pairs/1", "rows").expectClosed(frame.ClosedTooExpensive, protocol.CodeTooExpensive)
	if n := f.metrics.WatchedKeys.Load(); n != 0 {
		t.Errorf("%d watched keys after a refusal", n)
	}
	f.view("g/out/1", "rows").expectRows("[[1 1]]")
	// A key that others watch already takes further viewers.
	f.view("g/out/1", "rows").expectRows("[[1 1]]")
}

func TestSubscribeWhenTheLoopHasEnded(t *testing.T) {
	f := start(t)
	f.stop()
	_, _, err := f.origin.Subscribe(t.Context(), "g/out/1", "rows")
	var refused *protocol.StreamError
	if !errors.As(err, &refused) || refused.Code != protocol.CodeBusy {
		t.Errorf("got %v", err)
	}
	if w, n := f.metrics.WatchedKeys.Load(), f.metrics.Viewers.Load(); w != 0 || n != 0 {
		t.Errorf("%d watched keys, %d viewers are left", w, n)
	}
}

func TestMetaAndProgress(t *testing.T) {
	f := start(t)
	track, release, err := f.origin.Subscribe(t.Context(), "g/named", "meta")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	cursor := track.NewCursor(func() {})
	defer cursor.Close()
	b, _ := cursor.Take(nil)
	_, payload, _, err := wire.ParseFrame(b)
	if err != nil {
		t.Fatal(err)
	}
	meta, err := frame.ParseMeta(payload)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(meta.View, meta.Schema, meta.Parameters, meta.Columns); got !=
		"named1[{t string} {min int}] [{N int} {text string} {min int}]" &&
		!strings.HasPrefix(got, "named") {
		t.Errorf("meta %s", got)
	}
	if len(meta.Parameters) != 2 || meta.Parameters[0] != (frame.Column{Name: "t", Type: frame.String}) {
		t.Errorf("parameters %v", meta.Parameters)
	}
	f.write("+edge(1, 2)")
	f.settle(0)
	track, release, err = f.origin.Subscribe(t.Context(), "g/named/x/1", "progress")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	cursor = track.NewCursor(func() {})
	defer cursor.Close()
	b, _ = cursor.Take(nil)
	if _, payload, _, err = wire.ParseFrame(b); err != nil {
		t.Fatal(err)
	}
	p, err := frame.ParseProgress(payload)
	if err != nil || p.Durable != 2 || p.Published != 2 {
		t.Errorf("progress %+v, %v", p, err)
	}
}

// announced lists the active suffixes of a new listing.
func announced(t *testing.T, o lite.Origin, prefix protocol.Path) string {
	t.Helper()
	a := o.Announcements(prefix)
	defer a.Close()
	return next(t, a)
}

func next(t *testing.T, a lite.Announcements) string {
	t.Helper()
	list, err := a.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		s := string(e.Suffix)
		if !e.Active {
			s = "-" + s
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestAnnouncements(t *testing.T) {
	f := start(t)
	for prefix, want := range map[protocol.Path]string{
		"":             "g/back g/named g/out",
		"g":            "back named out",
		"g/out":        "",
		"g/out/400":    "",
		"g/ou":         "none",
		"other/out":    "none",
		"g/out/a/b/c/": "",
	} {
		a := f.origin.Announcements(prefix)
		list, err := a.Next(t.Context())
		a.Close()
		if err != nil {
			t.Fatal(err)
		}
		if want == "none" {
			if len(list) != 0 {
				t.Errorf("prefix %q: %v", prefix, list)
			}
			continue
		}
		if got := announced(t, f.origin, prefix); got != want || len(list) == 0 {
			t.Errorf("prefix %q: %q, want %q", prefix, got, want)
		}
	}
	a := f.origin.Announcements("g")
	defer a.Close()
	next(t, a)
	f.apply("+edge(src: int, dst: int)\nview out($x: int) := ?edge($x, Y)\nview new($x: int) := ?edge($x, $x)\n")
	if got := next(t, a); got != "-back -named new" {
		t.Errorf("after the apply: %q", got)
	}
	f.apply("+edge(src: int, dst: int)\nview out($x: int) := ?edge($x, Y)\n")
	f.apply("+edge(src: int, dst: int)\nview out($x: int) := ?edge($x, Y)\nview last($x: int) := ?edge($x, $x)\n")
	if got := next(t, a); got != "last -new" {
		t.Errorf("two applies at once: %q", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Next with an ended context: %v", err)
	}
}
