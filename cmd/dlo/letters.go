package main

type lettersCmd struct{}

func defaultServer(getenv func(string) string) string {
	if v := getenv("DLO_LISTEN"); v != "" {
		return "http://" + v
	}
	return "http://127.0.0.1:8672"
}
