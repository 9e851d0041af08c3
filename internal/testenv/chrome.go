package testenv

var chrome sharedChrome

type sharedChrome struct{}

func (sharedChrome) stop() {}
