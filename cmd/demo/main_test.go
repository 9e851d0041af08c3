package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// runVariable is an environment variable. If it is set, the test binary runs as the demo. Its value
// is a JSON array with the arguments of the demo.
const runVariable = "DLO_TEST_DEMO"

func TestMain(m *testing.M) {
	if text := os.Getenv(runVariable); text != "" {
		if err := json.Unmarshal([]byte(text), &os.Args); err != nil {
			panic(err)
		}
		main()
	}
	os.Exit(testenv.Main(m))
}
