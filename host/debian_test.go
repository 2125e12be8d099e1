package host_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/lite"
	"github.com/heddle-live/heddle/sdk/frame"
)

var debianSeed = flag.Uint64("debian.seed", 0, "seed of TestDebian; 0 takes a random one")

const (
	debianViewers      = 200
	debianViewersRace  = 50
	debianChanges      = 250
	debianChangesShort = 50
	// debianTogether is how many keys a client asks for at a time.
	debianTogether = 50
)

// debianRoots are watched with all that they need, directly or not.
var debianRoots = []string{"curl", "0ad", "python3-aiohttp", "vim-gtk3"}

// TestDebian loads the package graph of Debian 12, watches 200 packages in one
// session and changes the graph at random. A slow model says what each change
// means for each viewer; it must get exactly that, once, and nobody else anything.
func TestDebian(t *testing.T) {
	seed := *debianSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	model := readDebian(t)
	p := spawn(t, t.TempDir(), "--linger-key", "0s")
	p.await()
	t.Logf("empty: %s", p.memory())
	loadDebian(t, p)
	transports := []string{"quic", "websocket"}
	if underRace {
		t.Logf("under the race detector: %d viewers over QUIC alone; each costs a hundred times as much",
			debianViewersRace)
		transports = transports[:1]
	}
	for i, transport := range transports {
		t.Run(transport, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			testDebian(t, p, model, transport, rng)
		})
	}
	p.stop()
}

// loadDebian applies the example program and loads its tables.
func loadDebian(t *testing.T, p *process) {
	t.Helper()
	program, err := os.ReadFile("../examples/debian/debian.heddle")
	if err != nil {
		t.Fatal(err)
	}
	var applied any
	p.must(&applied, call{
		method: "PUT", path: "/v1/graphs/g/program?create", media: "text/plain", body: string(program),
	})
	total := time.Duration(0)
	for _, table := range debianTables {
		packed, err := os.ReadFile(debianFile(table.name))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var r receipt
		p.must(&r, call{
			method: "POST", path: "/v1/graphs/g/relations/" + table.name + "/rows",
			media: "text/csv", body: string(packed),
		})
		took := time.Since(began)
		total += took
		t.Logf("loaded %6d rows of %-9s in %v", r.Inserted, table.name, took.Round(time.Millisecond))
		if r.Inserted != table.rows {
			t.Errorf("%d rows of %s inserted, want %d", r.Inserted, table.name, table.rows)
		}
	}
	t.Logf("loaded in %v: %s", total.Round(time.Millisecond), p.memory())
}

// debianView is a view of the example with its rows by the model, as text, sorted,
// and as a query.
type debianView struct {
	name  string
	rows  func(m *debianModel, pkg string) []string
	query string
}

var (
	debianDeps = &debianView{
		"deps", (*debianModel).deps, "?needs($pkg, Package), packages(Package, Section, KiB)",
	}
	debianEverything = &debianView{
		"everything", (*debianModel).everything, "?installs($pkg, Package)",
	}
)

// debianViewer is a viewer of one key.
type debianViewer struct {
	pkg  string
	view *debianView
	sub  *lite.Subscription

	// Of the goroutine that reads, until it has ended.
	state frame.State

	// Of the test.
	rows     []string // by the model
	revision uint64   // of the last frame that came
	got      bool     // a frame of the present change
}

// debianEvent is a frame that a viewer got, or the end of its track.
type debianEvent struct {
	viewer *debianViewer
	frame  *frame.Frame
	change frame.Change
	err    error
}

// debianSession is one session's viewers.
type debianSession struct {
	t       *testing.T
	process *process
	model   *debianModel
	viewers []*debianViewer
	events  chan debianEvent
	readers sync.WaitGroup
	stop    context.CancelFunc
	touched map[string][]int // by kind of change: the viewers that each one reached
}

func testDebian(t *testing.T, p *process, model *debianModel, transport string, rng *rand.Rand) {
	defer func(outer *testing.T) { p.t = outer }(p.t)
	p.t = t
	client, hangUp := p.dial(transport)
	s := &debianSession{
		t: t, process: p, model: model, events: make(chan debianEvent, 2*debianViewers),
		touched: map[string][]int{},
	}
	viewers := debianViewers
	if underRace {
		viewers = debianViewersRace
	}
	var watched []string
	for _, i := range rng.Perm(len(model.names))[:viewers] {
		watched = append(watched, model.names[i])
	}
	began := time.Now()
	s.watch(client, watched)
	t.Logf("%d keys watched in %v: %s", len(s.viewers),
		time.Since(began).Round(time.Millisecond), p.memory())
	changes := debianChanges
	if testing.Short() || underRace {
		changes = debianChangesShort
		t.Logf("-short or under the race detector: %d changes of %d", changes, debianChanges)
	}
	changer := &debianChanger{debianModel: model, rng: rng, watched: watched}
	published := p.metric("heddle_groups_published_total")
	frames, slowest := 0, time.Duration(0)
	for n := range changes {
		began := time.Now()
		frames += s.change(changer.draw())
		slowest = max(slowest, time.Since(began))
		if t.Failed() {
			t.Fatalf("at change %d", n)
		}
	}
	// A change for everybody brings to light what else was published.
	last := &debianChange{kind: "everybody's"}
	last.insert = append(last.insert, packagesFact("heddle-"+transport, debianPackage{kib: 1}))
	for _, v := range s.viewers {
		last.insert = append(last.insert, dependsFact(v.pkg, "heddle-"+transport))
	}
	frames += s.change(last)
	if got := p.metric("heddle_groups_published_total") - published; int(got) != frames {
		t.Errorf("%v groups were published, %d were due", got, frames)
		for _, name := range []string{ // what a session that broke and came back leaves
			"heddle_groups_sent_total", "heddle_groups_superseded_total",
			"heddle_requests_refused_total", "heddle_blocked_writes_total", "heddle_sessions",
		} {
			t.Logf("%s %v", name, p.metric(name))
		}
	}
	t.Logf("%d changes, %d frames, slowest change %v: %s\n%s", changes, frames,
		slowest.Round(time.Millisecond), p.memory(), s.kinds())
	s.end(hangUp)
}

// watch subscribes for every package, and for the roots with all they need, and
// waits for their snapshots.
func (s *debianSession) watch(client *lite.Session, watched []string) {
	s.t.Helper()
	var ctx context.Context
	ctx, s.stop = context.WithCancel(s.t.Context())
	for i, pkg := range watched {
		s.add(ctx, client, &debianViewer{pkg: pkg, view: debianDeps}, i%2 == 0)
	}
	for _, pkg := range debianRoots {
		s.add(ctx, client, &debianViewer{pkg: pkg, view: debianEverything}, true)
	}
	s.snapshots()
}

// add subscribes for one key, by its own broadcast or as a track of the view's.
func (s *debianSession) add(ctx context.Context, client *lite.Session, v *debianViewer,
	byPath bool,
) {
	s.t.Helper()
	if len(s.viewers) > 0 && len(s.viewers)%debianTogether == 0 {
		s.snapshots()
	}
	key := string(frame.AppendKeyString(nil, v.pkg))
	broadcast, track := protocol.Path("g/"+v.view.name), frame.TrackRows+"/"+key
	if byPath {
		broadcast, track = broadcast.Join(protocol.Path(key)), frame.TrackRows
	}
	var err error
	if v.sub, err = client.Subscribe(ctx, broadcast, track, lite.SubscribeOptions{}); err != nil {
		s.t.Fatal(err)
	}
	s.viewers = append(s.viewers, v)
	v.rows = v.view.rows(s.model, v.pkg)
	s.readers.Go(func() {
		defer v.sub.Close()
		for v.read(ctx, s.events) {
		}
	})
}

// read passes one frame on. It returns false at the end.
func (v *debianViewer) read(ctx context.Context, events chan<- debianEvent) bool {
	e := debianEvent{viewer: v}
	f, err := v.sub.Next(ctx)
	if err == nil {
		e.frame, err = frame.ParseFrame(f.Payload, nil)
	}
	if err == nil {
		e.change = v.state.Apply(f.Sequence, uint64(f.Index), e.frame)
	}
	if e.err = err; ctx.Err() != nil {
		return false
	}
	select {
	case events <- e:
	case <-ctx.Done():
		return false
	}
	return err == nil
}

// next waits for a frame of any viewer.
func (s *debianSession) next() debianEvent {
	s.t.Helper()
	select {
	case e := <-s.events:
		if e.err != nil {
			s.t.Fatalf("viewer of %s: %v", e.viewer.pkg, e.err)
		}
		return e
	case <-time.After(processPatience):
		for _, v := range s.viewers {
			if v.got {
				continue
			}
			s.t.Errorf("viewer of %s waits behind revision %d", v.pkg, v.revision)
		}
		s.t.Fatal("no frame came")
		panic("unreachable")
	}
}

// snapshots waits for the first frame of every viewer.
func (s *debianSession) snapshots() {
	s.t.Helper()
	for _, v := range s.viewers {
		v.got = v.revision != 0
	}
	for slices.ContainsFunc(s.viewers, func(v *debianViewer) bool { return !v.got }) {
		e := s.next()
		v := e.viewer
		if e.change.Outcome == frame.Partial {
			continue
		}
		if got := debianRows(e.change.Entered); v.got || !slices.Equal(got, v.rows) {
			s.t.Errorf("viewer of %s: snapshot %v, want %v", v.pkg, got, v.rows)
		}
		v.got, v.revision = true, e.frame.Revision
	}
}

// change commits a change and waits until all whom it concerns have seen it. It
// returns how many.
func (s *debianSession) change(c *debianChange) int {
	s.t.Helper()
	s.model.apply(c)
	var r receipt
	s.process.must(&r, call{
		method: "POST", path: "/v1/graphs/g/transactions", media: "application/json",
		body: c.body(s.t),
	})
	due := 0
	entered, left := map[*debianViewer][]string{}, map[*debianViewer][]string{}
	for _, v := range s.viewers {
		rows := v.view.rows(s.model, v.pkg)
		entered[v], left[v] = missingFrom(v.rows, rows), missingFrom(rows, v.rows)
		v.rows = rows
		if v.got = len(entered[v])+len(left[v]) == 0; !v.got {
			due++
		}
	}
	s.touched[c.kind] = append(s.touched[c.kind], due)
	for range due {
		e := s.next()
		v, f := e.viewer, e.frame
		switch {
		case v.got:
			s.t.Fatalf("%s: the viewer of %s got a frame of revision %d that nobody expects",
				c.kind, v.pkg, f.Revision)
		case e.change.Outcome != frame.Applied || f.Revision != r.Revision ||
			!f.HasBase || f.Base != v.revision || e.change.Skipped:
			s.t.Errorf("%s: the viewer of %s, at revision %d, got revision %d on %d instead of %d: %v",
				c.kind, v.pkg, v.revision, f.Revision, f.Base, r.Revision, e.change.Outcome)
		case !slices.Equal(debianRows(e.change.Entered), entered[v]) ||
			!slices.Equal(debianRows(e.change.Left), left[v]):
			s.t.Errorf("%s: for the viewer of %s\n%v entered, want\n%v;\n%v left, want\n%v", c.kind,
				v.pkg, e.change.Entered, entered[v], e.change.Left, left[v])
		}
		v.got, v.revision = true, f.Revision
	}
	return due
}

// kinds tells how many viewers each kind of change reached.
func (s *debianSession) kinds() string {
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(s.touched)) {
		reached := s.touched[kind]
		total, none := 0, 0
		for _, n := range reached {
			total += n
			if n == 0 {
				none++
			}
		}
		fmt.Fprintf(&b, "%30s: %3d changes, %3d of them for nobody, %4d frames, %3d of one at most\n",
			kind, len(reached), none, total, slices.Max(reached))
	}
	return b.String()
}

// end hangs up, compares what each viewer holds with a fresh query, and waits
// until nothing is watched any more.
func (s *debianSession) end(hangUp func()) {
	s.t.Helper()
	s.stop()
	s.readers.Wait()
	hangUp()
	if n := len(s.events); n > 0 {
		s.t.Errorf("%d frames more than expected", n)
	}
	began := time.Now()
	for _, v := range s.viewers {
		fresh := debianRows(s.process.query(v.view.query, map[string]any{"pkg": v.pkg}))
		if held := debianRows(v.state.Rows()); !slices.Equal(held, fresh) || !slices.Equal(held, v.rows) {
			s.t.Errorf("the viewer of %s holds\n%v, a query says\n%v, the model\n%v",
				v.pkg, held, fresh, v.rows)
		}
	}
	s.t.Logf("%d queries in %v", len(s.viewers), time.Since(began).Round(time.Millisecond))
	s.process.until("heddle_watched_keys", 0)
}

// debianRows spells rows as the model does.
func debianRows(rows []frame.Row) []string {
	texts := make([]string, len(rows))
	for i, row := range rows {
		row = slices.Clone(row)
		for j, cell := range row {
			if number, ok := cell.(float64); ok { // as encoding/json reads it
				row[j] = int64(number)
			}
		}
		texts[i] = fmt.Sprint(row)
	}
	slices.Sort(texts)
	return texts
}

// missingFrom returns what of all, sorted, is not in some, sorted.
func missingFrom(some, all []string) []string {
	var missing []string
	for _, row := range all {
		if _, found := slices.BinarySearch(some, row); !found {
			missing = append(missing, row)
		}
	}
	return missing
}
