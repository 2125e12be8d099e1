package host

import (
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/heddle-live/heddle/host/config"
)

// startDemo runs a server with the demo's graph and no writer.
func startDemo(t *testing.T) *demoPage {
	t.Helper()
	cfg := config.Default()
	cfg.DataDir, cfg.DataListen, cfg.AdminListen = t.TempDir(), "127.0.0.1:0", "127.0.0.1:0"
	server, err := Start(t.Context(), cfg, Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Run(t.Context()) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Errorf("server: %v", err)
		}
	})
	page := &demoPage{server: server}
	if err := page.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return page
}

func TestDemoPageWritesFacts(t *testing.T) {
	page := startDemo(t)
	for _, c := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"insert", `{"op":"insert","values":[3,61]}`, 200, `"inserted":1`},
		{"again", `{"op":"insert","values":[3,61]}`, 200, `"inserted":0`},
		{"delete", `{"op":"delete","values":[3,61]}`, 200, `"deleted":1`},
		{"op", `{"op":"upsert","values":[3,61]}`, 400, "insert and delete are known"},
		{"arity", `{"op":"insert","values":[3]}`, 400, "carries"},
		{"text", `{"op":"insert","values":[3,"x"]}`, 400, "a whole number is expected"},
		{"fraction", `{"op":"insert","values":[3,1.5]}`, 400, "a whole number is expected"},
		{"json", `{"op":`, 400, "the body is not"},
		{"large", `{"op":"` + strings.Repeat("x", demoBodyBytes) + `"}`, 400, "too large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := httptest.NewRecorder()
			page.handler().ServeHTTP(answer,
				httptest.NewRequest("POST", "/demo/facts", strings.NewReader(c.body)))
			if answer.Code != c.status || !strings.Contains(answer.Body.String(), c.want) {
				t.Errorf("%d %s", answer.Code, answer.Body)
			}
		})
	}
}

func TestDemoPageTellsWhatItShows(t *testing.T) {
	page := startDemo(t)
	answer := httptest.NewRecorder()
	page.handler().ServeHTTP(answer, httptest.NewRequest("GET", "/demo/info", nil))
	var info demoInfo
	if err := json.Unmarshal(answer.Body.Bytes(), &info); err != nil {
		t.Fatal(err)
	}
	if len(info.Keys) < 12 || info.View != "tour_of" || len(info.Columns) != 2 ||
		!strings.Contains(info.Program, "view tour_of") {
		t.Errorf("%+v", info)
	}
	answer = httptest.NewRecorder()
	page.handler().ServeHTTP(answer, httptest.NewRequest("GET", "/demo/stats", nil))
	var stats demoStats
	if err := json.Unmarshal(answer.Body.Bytes(), &stats); err != nil || stats.Revision != 1 {
		t.Errorf("%+v, %v", stats, err)
	}
	holders, err := page.holders(t.Context())
	if err != nil || len(holders) != 60 {
		t.Errorf("%d holders, %v", len(holders), err)
	}
}

func TestRates(t *testing.T) {
	var r rates
	at := time.Unix(1000, 0)
	r.look(100, at)
	if perSecond, _ := r.look(300, at.Add(2*time.Second)); perSecond != 100 {
		t.Errorf("%v writes per second, want 100", perSecond)
	}
	if perSecond, _ := r.look(900, at.Add(2*time.Second+time.Millisecond)); perSecond != 100 {
		t.Errorf("%v writes per second from a look that came at once", perSecond)
	}
	if perSecond, cpu := r.look(300, at.Add(4*time.Second)); perSecond != 0 || cpu != 0 {
		t.Errorf("%v writes per second, %v us without a write", perSecond, cpu)
	}
}
