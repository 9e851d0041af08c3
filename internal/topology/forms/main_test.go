// Package forms checks the forms of a plan with the code of the programs that read them. It is a
// separate module, because these programs need hundreds of packages that dlo does not need.
package forms

import (
	"os"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }
