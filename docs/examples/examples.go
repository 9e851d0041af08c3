// Package examples contains the example of the configuration file, which has every default, and the
// JSON schema of the file.
package examples

import _ "embed"

// Configuration is the example of the configuration file.
//
//go:embed dlo.yaml
var Configuration string

// Schema is the JSON schema of the configuration file.
//
//go:embed dlo.schema.json
var Schema string
