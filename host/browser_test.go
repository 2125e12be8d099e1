//go:build browser

package host_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-live/heddle/host/config"
)

// pageScript builds the script of testdata/browser once for all tests.
var pageScript = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "heddle-page-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "page.js")
	cmd := exec.Command("go", "run", ".", "-entry", "host/testdata/browser/page.ts", "-out", out)
	cmd.Dir = filepath.Join("..", ".ci", "bundle")
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("bundle the page: %w\n%s", err, said)
	}
	return os.ReadFile(out)
})

// pages serves the page under test, apart from the servers it watches: it
// outlives them. stall, if set, is what the page's stall() waits for.
type pages struct {
	*httptest.Server
	stall func()
}

func servePages(t *testing.T) *pages {
	t.Helper()
	script, err := pageScript()
	if err != nil {
		t.Fatal(err)
	}
	p := &pages{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, "testdata/browser/index.html")
	})
	mux.HandleFunc("GET /page.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		_, _ = w.Write(script) // a page that left is no error of ours
	})
	mux.HandleFunc("GET /stall", func(http.ResponseWriter, *http.Request) { p.stall() })
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

// at is the address of the page that watches keys of view hot on a server.
func (p *pages) at(data, transport, keys string, more ...string) string {
	query := url.Values{
		"server": {"http://" + data + "/"}, "transport": {transport}, "keys": {keys},
	}
	for i := 0; i < len(more); i += 2 {
		query.Set(more[i], more[i+1])
	}
	return p.URL + "/?" + query.Encode()
}

// metric reads a metric without labels.
func (s *server) metric(name string) int {
	s.t.Helper()
	_, body := s.call("GET", "/metrics", "", "")
	for line := range strings.Lines(body) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				s.t.Fatal(err)
			}
			return int(value)
		}
	}
	s.t.Fatalf("no metric %s", name)
	return 0
}

// until waits until a metric has a value and returns how long that took.
func (s *server) until(name string, want int) time.Duration {
	s.t.Helper()
	began := time.Now()
	err := retry(browserPatience, func() error {
		if got := s.metric(name); got != want {
			return fmt.Errorf("%s is %d, want %d", name, got, want)
		}
		return nil
	})
	if err != nil {
		s.t.Fatalf("waited %v: %v", browserPatience, err)
	}
	return time.Since(began)
}

// abandoned waits until the server holds nothing for any viewer.
func (s *server) abandoned() time.Duration {
	s.t.Helper()
	took := s.until("heddle_watched_keys", 0)
	for _, name := range []string{"heddle_viewers", "heddle_subscriptions", "heddle_sessions"} {
		took += s.until(name, 0)
	}
	return took
}

// fill makes every key from 1 to last hot, and gives key k the rows [k 1] to
// [k k%4]: some have none.
func (s *server) fill(last int) {
	s.t.Helper()
	s.apply(testProgram)
	insert := struct {
		Label [][2]any `json:"label"`
		Edge  [][2]any `json:"edge"`
	}{}
	for k := 1; k <= last; k++ {
		insert.Label = append(insert.Label, [2]any{k, "hot"})
		for row := 1; row <= k%4; row++ {
			insert.Edge = append(insert.Edge, [2]any{k, row})
		}
	}
	body, err := json.Marshal(map[string]any{"insert": insert})
	if err != nil {
		s.t.Fatal(err)
	}
	s.write(string(body))
}

// told is what the page keeps of an update.
type told struct {
	Revision      uint64
	Entered, Left [][2]int
	Skipped       bool
}

// exact fails the test unless the page holds these rows of a key and all that it
// was told of any key fits together.
func (p *page) exact(key int, via string, want [][2]int) {
	p.t.Helper()
	var rows [][2]int
	p.get(&rows, "lab.rows(%d, %q)", key, via)
	if !reflect.DeepEqual(rows, want) {
		p.t.Errorf("key %d by %s: rows %v, want %v", key, via, rows, want)
	}
	var faults []string
	p.get(&faults, "lab.faults")
	for _, fault := range faults {
		p.t.Error(fault)
	}
}

// TestBrowserKeyedViews has many keyed views on one page, and writes to half of
// them: each write is one frame to one view.
func TestBrowserKeyedViews(t *testing.T) {
	pages, browser := servePages(t), startChromium(t)
	for _, transport := range []string{"webtransport", "websocket"} {
		for _, views := range []int{50, 200} {
			t.Run(fmt.Sprintf("%s/views=%d", transport, views), func(t *testing.T) {
				keyedViews(t, browser, pages, transport, views)
			})
		}
	}
}

func keyedViews(t *testing.T, browser *chromium, pages *pages, transport string, views int) {
	t.Helper()
	s := startServer(t)
	s.fill(views)
	p := browser.open(t, pages.at(s.running.DataAddr(), transport, fmt.Sprintf("1-%d", views)))
	p.until("lab.held === %d && lab.live === %[1]d", views)
	var got struct {
		Transport   string
		SnapshotsMs float64
	}
	p.get(&got, "({ transport: lab.transport, snapshotsMs: lab.snapshotsMs })")
	if got.Transport != transport {
		t.Errorf("the page uses %q", got.Transport)
	}
	if n := s.metric("heddle_watched_keys"); n != views {
		t.Errorf("%d watched keys", n)
	}
	// Of the 100 or so streams that a browser grants some must stay free.
	if n := s.metric("heddle_group_streams_open"); n > 64 {
		t.Errorf("%d streams of groups are open", n)
	}
	waits := s.metric("heddle_stream_credit_waits_total")
	took := writeToHalf(t, s, p, views)
	p.quiet()
	p.close()
	t.Logf("%d snapshots after %.0f ms, %d waits for stream credit; a write and its rows took %v; "+
		"keys unwatched %v after the page's end", views, got.SnapshotsMs, waits,
		took.Round(10*time.Microsecond), s.abandoned().Round(10*time.Millisecond))
}

// writeToHalf writes 200 times to the even keys in turn, each time one row in
// and one out, and counts. It returns the mean time of a write until the page
// has its rows.
func writeToHalf(t *testing.T, s *server, p *page, views int) time.Duration {
	t.Helper()
	const writes = 200
	frames := make([]int, views) // that the page has to have got, by key
	rows := map[int][][2]int{}
	for k := 1; k <= views; k++ {
		frames[k-1] = 1
		for row := 1; row <= k%4; row++ {
			rows[k] = append(rows[k], [2]int{k, row})
		}
	}
	sent := s.metric("heddle_frames_sent_total")
	superseded := s.metric("heddle_groups_superseded_total")
	began := time.Now()
	for i := range writes {
		k := 2 + 2*i%views
		in := [2]int{k, 1000 + i}
		want := told{Entered: [][2]int{in}, Left: [][2]int{}}
		body := fmt.Sprintf(`{"insert":{"edge":[[%d,%d]]}}`, k, in[1])
		if len(rows[k]) > 0 {
			out := rows[k][0]
			body = fmt.Sprintf(`{"insert":{"edge":[[%d,%d]]},"delete":{"edge":[[%d,%d]]}}`,
				k, in[1], k, out[1])
			want.Left, rows[k] = [][2]int{out}, rows[k][1:]
		}
		rows[k] = append(rows[k], in)
		frames[k-1]++
		want.Revision = s.write(body)
		var got told
		p.get(&got, "lab.at(%d, %d)", k, want.Revision)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("write %d: the page was told %+v, want %+v", i, got, want)
		}
	}
	took := time.Since(began) / writes
	var counts struct{ Frames, Updates []int }
	p.get(&counts, "lab.counts()")
	if !reflect.DeepEqual(counts.Frames, frames) || !reflect.DeepEqual(counts.Updates, frames) {
		t.Errorf("the page got frames %v and updates %v, want both %v",
			counts.Frames, counts.Updates, frames)
	}
	if n := s.metric("heddle_frames_sent_total") - sent; n != writes {
		t.Errorf("the server sent %d frames for %d writes", n, writes)
	}
	if n := s.metric("heddle_groups_superseded_total") - superseded; n != 0 {
		t.Errorf("%d groups were superseded", n)
	}
	for k := range rows {
		p.exact(k, "track", rows[k])
	}
	return took
}

// TestBrowserStalledPage holds a page's thread while 300 writes to its key are
// made at 100 a second. The page must end with the newest rows, whatever it was
// sent of what came between. Small groups wait in Chromium: it returns the stream
// credit of WebTransport streams that it has whole, read or not. Large ones come
// up against its flow control.
func TestBrowserStalledPage(t *testing.T) {
	pages, browser := servePages(t), startChromium(t)
	for _, tt := range []struct {
		transport       string
		rows            int // that the key has besides the one that changes
		supersededLeast int
	}{
		{"webtransport", 0, 0},
		{"webtransport", 8000, 1},
		{"websocket", 0, 1},
		{"websocket", 8000, 1},
	} {
		t.Run(fmt.Sprintf("%s/rows=%d", tt.transport, 1+tt.rows), func(t *testing.T) {
			s := startServer(t)
			s.fill(2)
			want := [][2]int{{1, 1 + stalledWrites}}
			for i := range tt.rows {
				want = append(want, [2]int{1, 10_000 + i})
			}
			body, err := json.Marshal(map[string]any{"insert": map[string]any{"edge": want[1:]}})
			if err != nil {
				t.Fatal(err)
			}
			s.write(string(body))
			p := browser.open(t, pages.at(s.running.DataAddr(), tt.transport, "1-2"))
			p.until("lab.held === 2")
			superseded := stallPage(t, s, pages, p)
			p.exact(1, "track", want)
			p.exact(2, "track", [][2]int{{2, 1}, {2, 2}, {2, 3}})
			if superseded < tt.supersededLeast {
				t.Errorf("%d groups were superseded", superseded)
			}
			p.quiet()
		})
	}
}

const stalledWrites = 300

// stallPage stalls the page and writes meanwhile, and once to key 2 in between.
// It waits for the newest rows, checks what was counted, and returns the number
// of groups that were superseded.
func stallPage(t *testing.T, s *server, pages *pages, p *page) int {
	t.Helper()
	var newest, other uint64
	pages.stall = func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for i := range stalledWrites {
			<-tick.C
			newest = s.write(fmt.Sprintf(
				`{"insert":{"edge":[[1,%d]]},"delete":{"edge":[[1,%d]]}}`, i+2, i+1))
			if i == stalledWrites/2 {
				other = s.write(`{"insert":{"edge":[[2,3]]}}`)
			}
		}
	}
	sent := s.metric("heddle_groups_sent_total")
	began := time.Now()
	p.get(nil, "lab.stall()")
	stalled := time.Since(began)
	p.get(nil, "lab.at(1, %d)", newest)
	behind := time.Since(began) - stalled
	p.get(nil, "lab.at(2, %d)", other)
	superseded := s.metric("heddle_groups_superseded_total")
	var counts struct{ Frames, Updates []int }
	p.get(&counts, "lab.counts()")
	// What the server sent and what it superseded is all; of what it sent, the
	// page's library may drop a group that a newer one has overtaken.
	sent = s.metric("heddle_groups_sent_total") - sent - 1 // one was the other key's
	if sent+superseded != stalledWrites || counts.Frames[0] > 1+sent {
		t.Errorf("%d groups were sent, %d superseded, of %d in all; the page got %d frames",
			sent, superseded, stalledWrites, counts.Frames[0])
	}
	if counts.Frames[1] != 2 {
		t.Errorf("%d frames for the other key", counts.Frames[1])
	}
	t.Logf("stalled for %v: %d frames and %d updates, %d superseded; newest rows %v after",
		stalled.Round(time.Millisecond), counts.Frames[0], counts.Updates[0], superseded,
		behind.Round(time.Millisecond))
	return superseded
}

// TestBrowserReloads loads a page again and again, each time somewhat later in
// its subscribing, and expects the server to keep what the last one watches only.
func TestBrowserReloads(t *testing.T) {
	const views, reloads = 50, 10
	pages, browser := servePages(t), startChromium(t)
	for _, transport := range []string{"webtransport", "websocket"} {
		t.Run(transport, func(t *testing.T) {
			s := startServer(t)
			s.fill(views)
			p := browser.open(t,
				pages.at(s.running.DataAddr(), transport, fmt.Sprintf("1-%d", views)))
			for i := range reloads {
				p.until("!globalThis.old && lab.held >= %d", views*i/reloads)
				p.get(nil, "globalThis.old = true")
				p.command("Page.reload", nil)
			}
			p.until("!globalThis.old && lab.held === %d", views)
			s.until("heddle_watched_keys", views)
			s.until("heddle_viewers", views)
			s.until("heddle_subscriptions", views)
			s.until("heddle_sessions", 1)
			p.exact(3, "track", [][2]int{{3, 1}, {3, 2}, {3, 3}})
			p.close()
			t.Logf("keys unwatched %v after the page's end",
				s.abandoned().Round(10*time.Millisecond))
		})
	}
}

// TestBrowserServerRestart stops the server under an open page and starts it
// again on the same port, with another certificate and something written before
// the page is back.
func TestBrowserServerRestart(t *testing.T) {
	pages, browser := servePages(t), startChromium(t)
	for _, transport := range []string{"webtransport", "websocket"} {
		t.Run(transport, func(t *testing.T) {
			s := startServer(t)
			s.fill(3)
			data := s.running.DataAddr()
			p := browser.open(t, pages.at(data, transport, "1-3", "via", "track,path"))
			p.until("lab.live === 6")
			s.stop()
			p.until("lab.live === 0")
			p.until("lab.dials.length >= 4")
			p.exact(3, "track", [][2]int{{3, 1}, {3, 2}, {3, 3}}) // the last ones known stay
			s.start(func(cfg *config.Config) { cfg.DataListen = data })
			began := time.Now()
			revision := s.write(`{"insert":{"edge":[[3,9]]},"delete":{"edge":[[3,1]]}}`)
			p.until("lab.live === 6")
			took := time.Since(began)
			p.get(nil, "lab.at(3, %d)", revision)
			for _, via := range []string{"track", "path"} {
				p.exact(1, via, [][2]int{{1, 1}})
				p.exact(2, via, [][2]int{{2, 1}, {2, 2}})
				p.exact(3, via, [][2]int{{3, 2}, {3, 3}, {3, 9}})
			}
			dials := backedOff(t, p)
			revision = s.write(`{"insert":{"edge":[[2,9]]}}`)
			p.get(nil, "lab.at(2, %d)", revision)
			p.exact(2, "track", [][2]int{{2, 1}, {2, 2}, {2, 9}})
			t.Logf("back %v after the start, with attempt %d", took.Round(time.Millisecond), dials)
		})
	}
}

// TestBrowserServerKilled kills the server under an open page, which nobody tells,
// and starts it again. Over WebTransport an idle page can notice only when
// Chromium asks whether the server is there, which it does every 15 s.
func TestBrowserServerKilled(t *testing.T) {
	pages, browser := servePages(t), startChromium(t)
	for _, transport := range []string{"webtransport", "websocket"} {
		t.Run(transport, func(t *testing.T) {
			dir := t.TempDir()
			s := spawn(t, dir)
			s.await()
			s.must(&struct{}{}, call{
				method: "PUT", path: "/v1/graphs/g/program?create", media: "text/plain",
				body: testProgram,
			})
			write := func(body string) uint64 {
				var r receipt
				s.must(&r, call{
					method: "POST", path: "/v1/graphs/g/transactions", media: "application/json",
					body: body,
				})
				return r.Revision
			}
			write(`{"insert":{"label":[[1,"hot"],[2,"hot"]],"edge":[[1,1]]}}`)
			p := browser.open(t, pages.at(s.data, transport, "1-2", "via", "track,path"))
			p.until("lab.live === 4")
			began := time.Now()
			s.kill()
			s = spawn(t, dir, "--data-listen", s.data)
			s.await()
			started := time.Now()
			revision := write(`{"insert":{"edge":[[1,2]]},"delete":{"edge":[[1,1]]}}`)
			p.get(nil, "lab.at(1, %d)", revision)
			took := time.Since(started)
			p.until("lab.live === 4")
			for _, via := range []string{"track", "path"} {
				p.exact(1, via, [][2]int{{1, 2}})
				p.exact(2, via, [][2]int{})
			}
			t.Logf("started again %v after the kill; the page was back %v later",
				started.Sub(began).Round(time.Millisecond), took.Round(time.Millisecond))
		})
	}
}

// backedOff checks the times of the page's attempts to reconnect and returns
// their number: each waits at least half of a delay that doubles from 200 ms.
func backedOff(t *testing.T, p *page) int {
	t.Helper()
	var dials []float64 // the first is from before the loss
	p.get(&dials, "lab.dials")
	for i := 2; i < len(dials); i++ {
		least := 100 * float64(int(1)<<(i-1))
		if gap := dials[i] - dials[i-1]; gap < least {
			t.Errorf("attempt %d came %.0f ms after the one before, want at least %.0f",
				i, gap, least)
		}
	}
	return len(dials) - 1
}
