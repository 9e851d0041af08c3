package backup

// Step exports step.
var Step = (*Schedule).step
