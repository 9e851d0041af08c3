// Package forms tests the formats in which people get a plan, with the code of the programs that
// read these formats. It is a separate module, because these programs need hundreds of packages
// that dlo does not need.
package forms

import (
	"os"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }
