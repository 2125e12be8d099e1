package admin_test

import (
	"strings"
	"testing"

	"github.com/heddle-live/heddle/admin"
)

func TestMetrics(t *testing.T) {
	m := admin.NewMetrics()
	err := m.Add(
		admin.Metric{
			Name: "heddle_writes_total", Help: "Writes.", Kind: admin.Counter,
			Read: func(emit admin.Emit) { emit(7) },
		},
		admin.Metric{
			Name: "heddle_watched_keys", Help: "Keys.", Kind: admin.Gauge, Labels: []string{"view"},
			Read: func(emit admin.Emit) { emit(1, "a"); emit(2, "b") },
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	h, err := m.AddHistogram("heddle_commit_seconds", "Commits.", admin.LatencyBuckets())
	if err != nil {
		t.Fatal(err)
	}
	h.Observe(0.0015)
	if n := testing.AllocsPerRun(100, func() { h.Observe(0.1) }); n != 0 {
		t.Errorf("Observe allocates %v times", n)
	}
	w := do(m.Handler(), request("GET", "/metrics", ""))
	for _, want := range []string{
		"# TYPE heddle_writes_total counter\nheddle_writes_total 7\n",
		"heddle_watched_keys{view=\"a\"} 1\nheddle_watched_keys{view=\"b\"} 2\n",
		"heddle_commit_seconds_bucket{le=\"0.001\"} 0\nheddle_commit_seconds_bucket{le=\"0.002\"} 1\n",
		"go_goroutines ", "process_cpu_seconds_total ",
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("metrics lack %q", want)
		}
	}
}

func TestMetricsRefuse(t *testing.T) {
	read := func(admin.Emit) {}
	m := admin.NewMetrics()
	if err := m.Add(admin.Metric{Name: "heddle_taken", Help: "x", Kind: admin.Gauge, Read: read}); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]admin.Metric{
		"taken":            {Name: "heddle_taken", Help: "x", Kind: admin.Gauge, Read: read},
		"prefix":           {Name: "writes_total", Help: "x", Read: read},
		"camel case":       {Name: "heddle_wRites_total", Help: "x", Read: read},
		"help":             {Name: "heddle_a_total", Read: read},
		"read":             {Name: "heddle_a_total", Help: "x"},
		"counter's suffix": {Name: "heddle_a", Help: "x", Read: read},
		"gauge's suffix":   {Name: "heddle_a_total", Help: "x", Kind: admin.Gauge, Read: read},
	} {
		if err := m.Add(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := m.AddHistogram("heddle_a", "x", nil); err == nil {
		t.Error("histogram without unit: no error")
	}
}

func TestRequestsAreMeasured(t *testing.T) {
	f := newFixture(t)
	do(f.admin, request("GET", "/v1/graphs", ""))
	do(f.admin, request("GET", "/v1/graphs", "", "Authorization: "))
	body := do(f.admin, request("GET", "/metrics", "")).Body.String()
	for _, want := range []string{
		`heddle_http_requests_total{route="list-graphs",status="200"} 1`,
		`heddle_http_requests_total{route="list-graphs",status="401"} 1`,
		`heddle_http_request_seconds_count{route="list-graphs"} 2`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("metrics lack %q", want)
		}
	}
}
