module github.com/heddle-live/heddle/testdata/openfga

go 1.26.0

require (
	github.com/openfga/openfga v1.22.1
	gopkg.in/yaml.v3 v3.0.1
)
