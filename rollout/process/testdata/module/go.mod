module agent

go 1.26
