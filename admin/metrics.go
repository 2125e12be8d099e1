package admin

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// MetricKind says how a Metric's value moves.
type MetricKind uint8

// The kinds of metrics in a table; histograms are made with AddHistogram.
const (
	Counter MetricKind = iota // only rises while the process lives; its name ends in _total
	Gauge                     // rises and falls
)

// Emit reports one value of a metric. labels are the values of Metric.Labels in
// their order; an emission with another number of them is dropped and shown as
// an error of the scrape.
type Emit func(value float64, labels ...string)

// Metric is one row of a metrics table: heddle_<what>_<unit>, read when somebody
// scrapes. Read is called from request goroutines, possibly several at once, and
// must not wait for a graph's loop.
type Metric struct {
	Name   string // heddle_ + words in snake case + unit: _seconds, _bytes; _total for counters
	Help   string // one sentence
	Kind   MetricKind
	Labels []string // few values each; never keys or values of facts
	Read   func(emit Emit)
}

// Histogram counts observations in buckets. Safe for concurrent use; Observe
// allocates nothing.
type Histogram struct{ observer prometheus.Observer }

// Observe adds one value, in the unit of the histogram's name.
func (h *Histogram) Observe(value float64) { h.observer.Observe(value) }

// LatencyBuckets are upper bounds in seconds, 50 us to 10 s, for histograms of
// requests, commits and fsyncs.
func LatencyBuckets() []float64 {
	return []float64{
		50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3, 50e-3,
		0.1, 0.2, 0.5, 1, 2, 5, 10,
	}
}

// Metrics is the registry behind /metrics: the tables added to it, and the Go
// runtime's and the process's own figures. Safe for concurrent use.
type Metrics struct{ registry *prometheus.Registry }

// NewMetrics returns a registry with the runtime's and the process's metrics.
func NewMetrics() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

var metricName = regexp.MustCompile(`^heddle(_[a-z0-9]+)+$`)

// Add registers a table. It refuses a name that is taken, or whose form and kind
// do not agree, and a metric without help.
func (m *Metrics) Add(table ...Metric) error {
	for _, row := range table {
		if err := checkMetric(row.Name, row.Help); err != nil {
			return err
		}
		if row.Read == nil {
			return fmt.Errorf("metric %s: Read is missing", row.Name)
		}
		if (row.Kind == Counter) != strings.HasSuffix(row.Name, "_total") {
			return fmt.Errorf("metric %s: names of counters, and only they, end in _total",
				row.Name)
		}
		c := &tableCollector{
			metric: row,
			desc:   prometheus.NewDesc(row.Name, row.Help, row.Labels, nil),
			kind:   prometheus.GaugeValue,
		}
		if row.Kind == Counter {
			c.kind = prometheus.CounterValue
		}
		if err := m.registry.Register(c); err != nil {
			return fmt.Errorf("metric %s: %w", row.Name, err)
		}
	}
	return nil
}

// AddHistogram registers a histogram with ascending upper bounds; its name ends
// in its unit. It refuses what Add refuses.
func (m *Metrics) AddHistogram(name, help string, buckets []float64) (*Histogram, error) {
	if err := checkMetric(name, help); err != nil {
		return nil, err
	}
	if !strings.HasSuffix(name, "_seconds") && !strings.HasSuffix(name, "_bytes") {
		return nil, fmt.Errorf("histogram %s: the name must end in its unit, _seconds or _bytes",
			name)
	}
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	if err := m.registry.Register(h); err != nil {
		return nil, fmt.Errorf("histogram %s: %w", name, err)
	}
	return &Histogram{observer: h}, nil
}

func checkMetric(name, help string) error {
	if !metricName.MatchString(name) {
		return fmt.Errorf("metric %s: the name must be heddle_ and words in snake case", name)
	}
	if help == "" {
		return fmt.Errorf("metric %s: help is missing", name)
	}
	return nil
}

// Handler serves the metrics in the formats that Prometheus reads.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// tableCollector reads one row of a table at each scrape.
type tableCollector struct {
	metric Metric
	desc   *prometheus.Desc
	kind   prometheus.ValueType
}

// Describe sends the row's description to the registry.
func (c *tableCollector) Describe(out chan<- *prometheus.Desc) { out <- c.desc }

// Collect sends the row's present values to the registry.
func (c *tableCollector) Collect(out chan<- prometheus.Metric) {
	c.metric.Read(func(value float64, labels ...string) {
		m, err := prometheus.NewConstMetric(c.desc, c.kind, value, labels...)
		if err != nil {
			m = prometheus.NewInvalidMetric(c.desc, err)
		}
		out <- m
	})
}

// watchRequests registers the REST routes' own metrics and hands each route its
// part, so that a request looks nothing up.
func (m *Metrics) watchRequests(table []route) error {
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "heddle_http_request_seconds",
		Help:    "Time from a request's headers to its answer, by route.",
		Buckets: LatencyBuckets(),
	}, []string{"route"})
	count := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "heddle_http_requests_total",
		Help: "Requests answered, by route and status.",
	}, []string{"route", "status"})
	for _, c := range []prometheus.Collector{seconds, count} {
		if err := m.registry.Register(c); err != nil {
			return fmt.Errorf("metrics of requests: %w", err)
		}
	}
	for i := range table {
		r := &table[i]
		latency := seconds.WithLabelValues(r.id)
		success := count.WithLabelValues(r.id, strconv.Itoa(r.status))
		r.watch = func(status int, took time.Duration) {
			latency.Observe(took.Seconds())
			if status == r.status {
				success.Inc()
			} else {
				count.WithLabelValues(r.id, strconv.Itoa(status)).Inc()
			}
		}
	}
	return nil
}
