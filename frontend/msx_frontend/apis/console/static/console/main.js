// The console. Its views come with the next files.
