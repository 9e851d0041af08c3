package rabbitmq_test

import (
	"os"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }
