// Package examples contains the example of the configuration file, which has every default.
package examples

import _ "embed"

// Configuration is the example of the configuration file.
//
//go:embed dlo.yaml
var Configuration string
