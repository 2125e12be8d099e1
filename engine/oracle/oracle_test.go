package oracle

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

var (
	oracleSeed = flag.Uint64("oracle.seed", 0, "run this one program of TestOracle")
	oracleMany = flag.Int("oracle.programs", 5000, "how many programs TestOracle runs")
	oracleText = flag.Bool("oracle.text", false, "print each program as it is made")
)

// shrinkTries bounds the runs that a shrinker makes.
const shrinkTries = 20_000

// TestOracle compares the engine with the naive evaluator on random programs under
// random transactions, actions, watches, queries and deploys. Each program has its
// own seed; a failure names it, and -oracle.seed runs it alone.
func TestOracle(t *testing.T) {
	if *oracleSeed != 0 {
		if err := check(*oracleSeed, &histogram{}); err != nil {
			t.Fatal(err)
		}
		return
	}
	first := rand.Uint64()>>1 + 1
	t.Logf("first seed %d", first)
	programs := *oracleMany
	if testing.Short() || underRace {
		programs /= 20
		t.Logf("-short or under the race detector: %d programs of %d", programs, *oracleMany)
	}
	h := &histogram{}
	if err := many(first, programs, h); err != nil {
		t.Fatal(err)
	}
	t.Log(h)
	h.judge(t)
}

// many checks programs of consecutive seeds, on all processors, and returns the
// failure of the lowest seed that failed.
func many(first uint64, programs int, h *histogram) error {
	var (
		next    atomic.Int64
		failed  atomic.Bool
		group   sync.WaitGroup
		lock    sync.Mutex
		failure error
		lowest  = int64(programs)
	)
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for !failed.Load() {
				i := next.Add(1) - 1
				if i >= int64(programs) {
					return
				}
				if err := check(first+uint64(i), h); err != nil {
					failed.Store(true)
					lock.Lock()
					if i < lowest {
						lowest, failure = i, err
					}
					lock.Unlock()
				}
			}
		})
	}
	group.Wait()
	return failure
}

// check runs the program of a seed. Its error tells all, with the smallest scenario
// that still fails.
func check(seed uint64, h *histogram) error {
	g := newGenerator(seed)
	s := g.scenario()
	if *oracleText {
		fmt.Printf("seed %d\n%v\n", seed, s)
	}
	seen := &seen{tags: g.tags}
	_, err := play(s, seen)
	if err == nil {
		h.add(seen)
		return nil
	}
	if errors.Is(err, errInvalid) {
		return fmt.Errorf("seed %d: the generator makes what is refused: %w\n%v", seed, err, s)
	}
	small, failure := shrink(s, err, shrinkTries)
	return fmt.Errorf("seed %d: %w\nfirst seen as: %w\n%v", seed, failure, err, small)
}

// histogram counts in how many programs each construct stood.
type histogram struct {
	lock            sync.Mutex
	programs        int
	constructs      map[string]int
	commits, moving int
	refused         int
}

func (h *histogram) add(s *seen) {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.programs++
	h.commits += s.commits
	h.moving += s.moving
	h.refused += s.refused
	if s.refused > 0 {
		s.tags["refusal"] = true
	}
	if h.constructs == nil {
		h.constructs = map[string]int{}
	}
	for construct := range s.tags {
		h.constructs[construct]++
	}
}

func (h *histogram) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d programs, %d commits, %d%% of them move a watched key, %d refused\n",
		h.programs, h.commits, 100*h.moving/max(h.commits, 1), h.refused)
	for _, name := range slices.Sorted(maps.Keys(h.constructs)) {
		fmt.Fprintf(&b, "%5.1f%% %s\n", 100*float64(h.constructs[name])/float64(h.programs), name)
	}
	return b.String()
}

// judge fails if the programs say too little.
func (h *histogram) judge(t *testing.T) {
	t.Helper()
	if h.programs < 500 {
		return // chance decides
	}
	for _, name := range slices.Sorted(maps.Keys(h.constructs)) {
		if n := h.constructs[name]; 20*n < h.programs {
			t.Errorf("%s is in %d of %d programs: less than 5%%", name, n, h.programs)
		}
	}
	if 2*h.moving < h.commits {
		t.Errorf("%d of %d commits change a watched key: less than half", h.moving, h.commits)
	}
}
