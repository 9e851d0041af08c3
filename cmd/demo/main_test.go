package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// runVariable makes the test binary run as the demo. Its value is a JSON array of arguments.
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
