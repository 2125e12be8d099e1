package host

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/heddle-live/heddle/admin"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/host/ingest"
	"github.com/heddle-live/heddle/host/views"
	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/moq"
)

// stressPrograms differ in all that can change under a viewer: a rule, the name of
// a parameter, a column, the view itself, the relation.
var stressPrograms = []string{
	edgesProgram,
	"+edge(src: int, dst: int)\nview out($y: int) := ?edge($y, Y), Y > 3\n",
	"+edge(from: int, to: int)\nview out($x: int) := ?edge($x, Z)\nview in($x: int) := ?edge(A, $x)\n",
	"+edge(src: int, dst: int)\nreach(X, Y) <- edge(X, Y)\nreach(X, Z) <- reach(X, Y), edge(Y, Z)\n" +
		"view out($x: int) := ?reach($x, Y)\nview in($x: int) := ?reach(X, $x)\n",
	"+edge(src: int, dst: string)\nview out($x: int) := ?edge($x, Y)\n",
	"+other(a: int)\nview all($a: int) := ?other($a)\n",
}

// stressErrors are what a caller may meet while everything changes around it.
var stressErrors = []error{
	admin.ErrNotFound, admin.ErrExists, admin.ErrBusy, admin.ErrClosing, admin.ErrProgramChanged,
	admin.ErrDeadline, admin.ErrTooExpensive,
}

func expected(err error) bool {
	for _, e := range stressErrors {
		if errors.Is(err, e) {
			return true
		}
	}
	var refused *protocol.StreamError
	return err == nil || errors.As(err, &refused) && refused.Code != protocol.CodeInternal
}

// stress is one run: everything random comes from its seed, but for the order of
// goroutines.
type stress struct {
	*someGraphs
	seed  uint64
	until time.Time
	done  sync.WaitGroup
}

// loop repeats an action until the time is over.
func (s *stress) loop(number uint64, name string, action func(g *rand.Rand) error) {
	s.done.Go(func() {
		g := rand.New(rand.NewPCG(s.seed, number))
		for time.Now().Before(s.until) {
			if err := action(g); !expected(err) {
				s.t.Errorf("%s: %v", name, err)
				return
			}
		}
	})
}

func graphName(g *rand.Rand) string { return string(rune('a' + g.IntN(2))) }

// view subscribes to a key, reads a little of it, and leaves.
func (s *stress) view(g *rand.Rand) error {
	broadcast := graphName(g) + "/" + []string{"out", "in", "all"}[g.IntN(3)]
	track := fmt.Sprint("rows/", g.IntN(12))
	switch g.IntN(8) {
	case 0:
		track = "meta"
	case 1:
		track = "rows/x" // an error that names the parameter
	}
	origin := s.directory.Origin(views.AllGrants(""))
	t, release, err := origin.Subscribe(s.t.Context(), protocol.Path(broadcast), track)
	if err != nil {
		return err
	}
	defer release()
	news := make(chan struct{}, 1)
	cursor := t.NewCursor(func() {
		select {
		case news <- struct{}{}:
		default:
		}
	})
	defer cursor.Close()
	patience := time.After(time.Duration(g.IntN(30)) * time.Millisecond)
	last := uint64(0)
	for {
		_, step := cursor.Take(nil)
		if step.Shared != nil {
			cursor.Release()
		}
		switch step.Kind {
		case moq.NewGroup:
			if step.Sequence <= last {
				return fmt.Errorf("group %d after %d", step.Sequence, last)
			}
			last = step.Sequence
		case moq.Aborted, moq.Finished:
			return nil
		case moq.Idle:
			select {
			case <-news:
			case <-patience:
				return nil
			}
		case moq.MoreFrames:
		}
	}
}

func (s *stress) listen(g *rand.Rand) error {
	a := s.directory.Origin(views.AllGrants("")).Announcements(protocol.Path(graphName(g)))
	defer a.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Millisecond)
	defer cancel()
	for {
		if _, err := a.Next(ctx); err != nil {
			return nil
		}
	}
}

func (s *stress) apply(g *rand.Rand) error {
	_, err := s.Apply(s.t.Context(), graphName(g), stressPrograms[g.IntN(len(stressPrograms))],
		admin.ApplyOptions{AllowLoss: true, DryRun: g.IntN(4) == 0, Create: g.IntN(2) == 0})
	return err
}

func (s *stress) write(g *rand.Rand) error {
	sign := "+-"[g.IntN(2)]
	return s.transact(graphName(g), fmt.Sprintf("%cedge(%d, %d)", sign, g.IntN(12), g.IntN(12)))
}

func (s *stress) query(g *rand.Rand) error {
	name := graphName(g)
	program, err := s.Schema(name)
	if err != nil {
		return err
	}
	parsed, err := parse.Query("?edge(X, Y)")
	if err != nil {
		return err
	}
	q, err := analysis.AnalyseQuery(program, parsed)
	if err != nil {
		return nil // this program has no edges
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Duration(g.IntN(5))*time.Millisecond)
	defer cancel()
	_, err = s.Query(ctx, name, q, nil, admin.QueryOptions{Program: program, MaxRows: 5})
	return err
}

func (s *stress) look(g *rand.Rand) error {
	s.Problems(s.t.Context())
	if _, err := s.Families(s.t.Context(), graphName(g)); err != nil {
		return err
	}
	_, err := s.Graphs(s.t.Context())
	return err
}

func (s *stress) recreate(g *rand.Rand) error {
	name := graphName(g)
	if err := s.DropGraph(s.t.Context(), name); !expected(err) {
		return err
	}
	time.Sleep(time.Duration(g.IntN(50)) * time.Millisecond) // others meet its absence
	return s.CreateGraph(s.t.Context(), name)
}

// TestStress has everything happen at once, best under the race detector, and looks
// whether anything is left of it.
func TestStress(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	length := 2 * time.Second
	if testing.Short() {
		length /= 4
	}
	dir := t.TempDir()
	s := &stress{someGraphs: openGraphs(t, dir), seed: seed, until: time.Now().Add(length)}
	for i := range uint64(6) {
		s.loop(i, "view", s.view)
	}
	for i := range uint64(3) {
		s.loop(10+i, "write", s.write)
	}
	s.loop(20, "apply", s.apply)
	s.loop(21, "query", s.query)
	s.loop(22, "look", s.look)
	s.loop(23, "listen", s.listen)
	s.loop(24, "recreate", s.recreate)
	s.done.Wait()
	facts := map[string]int{}
	for _, name := range s.names() {
		h, err := s.find(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.loop.Call(t.Context(), func(turn *ingest.Turn) {
			for h.views.Tidy(turn, time.Now().Add(time.Hour)) {
			}
			stats := turn.Engine.Stats()
			facts[name] = stats.Facts
			if stats.WatchedKeys != 0 || stats.DerivedRows != 0 {
				t.Errorf("graph %s: %d keys and %d derived rows are left",
					name, stats.WatchedKeys, stats.DerivedRows)
			}
		}); err != nil {
			t.Error(err)
		}
	}
	if w, n := s.metrics.WatchedKeys.Load(), s.metrics.Viewers.Load(); w != 0 || n != 0 {
		t.Errorf("%d watched keys, %d viewers are left", w, n)
	}
	s.stop()
	again := openGraphs(t, dir)
	defer again.stop()
	if len(again.names()) != len(facts) {
		t.Errorf("graphs %v after a restart, %d before", again.names(), len(facts))
	}
	for name, n := range facts {
		if info, err := again.Graph(t.Context(), name); err != nil || info.Facts != n {
			t.Errorf("graph %s: %+v, %v; want %d facts", name, info, err, n)
		}
	}
}

// TestStopUnderLoad stops everything while it is in use: whoever waits is answered.
func TestStopUnderLoad(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for round := range uint64(5) {
		s := &stress{
			someGraphs: openGraphs(t, t.TempDir()), seed: seed + round,
			until: time.Now().Add(200 * time.Millisecond),
		}
		s.loop(0, "view", s.view)
		s.loop(1, "view", s.view)
		s.loop(2, "write", s.write)
		s.loop(3, "write", s.write)
		s.loop(4, "apply", s.apply)
		s.loop(5, "query", s.query)
		s.loop(6, "recreate", s.recreate)
		time.Sleep(time.Duration(20+round*30) * time.Millisecond) // into the middle of it
		if err := s.close(t.Context()); err != nil {
			t.Error(err)
		}
		s.done.Wait()
		s.stop()
	}
}
