package api

// BackupHeader is the header of the answer to POST /backup that has the manifest of the backup, as
// JSON.
const BackupHeader = "Dlo-Backup"
