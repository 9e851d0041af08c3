package topology

import (
	"bytes"
	"encoding/json"
)

// QueueAt identifies a queue of a definitions file.
type QueueAt struct{ VHost, Name string }

// QueueLines returns, for each queue in a definitions file, the number of the line that contains
// its name. If the file does not name the vhost, the field VHost of the keys is empty. The result
// is empty for a text that is not a definitions file.
func QueueLines(text []byte) map[QueueAt]int {
	lines := map[QueueAt]int{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	eachMember(decoder, func(key string) bool {
		if key != "queues" {
			return skipValue(decoder)
		}
		if t, err := decoder.Token(); err != nil || t != json.Delim('[') {
			return false
		}
		for decoder.More() {
			var q QueueAt
			at := 1
			eachMember(decoder, func(key string) bool {
				switch key {
				case "name":
					at = line(text, decoder.InputOffset())
					return decoder.Decode(&q.Name) == nil
				case "vhost":
					return decoder.Decode(&q.VHost) == nil
				}
				return skipValue(decoder)
			})
			if _, err := decoder.Token(); err != nil { // the end of the queue
				return false
			}
			lines[q] = at
		}
		_, err := decoder.Token() // the end of the queues
		return err == nil
	})
	return lines
}

// eachMember calls the function "visit" for every key of the next JSON object. The function "visit"
// must read the value of the key. If it returns false, eachMember stops.
func eachMember(decoder *json.Decoder, visit func(key string) bool) {
	if t, err := decoder.Token(); err != nil || t != json.Delim('{') {
		return
	}
	for decoder.More() {
		key, err := decoder.Token()
		name, ok := key.(string)
		if err != nil || !ok || !visit(name) {
			return
		}
	}
}

// skipValue passes over a value.
func skipValue(decoder *json.Decoder) bool {
	var value json.RawMessage
	return decoder.Decode(&value) == nil
}
