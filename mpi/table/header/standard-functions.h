
#define MPI_DUP_FN ((MPI_Copy_function *)1)
#define MPI_COMM_DUP_FN ((MPI_Comm_copy_attr_function *)1)
#define MPI_TYPE_DUP_FN ((MPI_Type_copy_attr_function *)1)
#define MPI_WIN_DUP_FN ((MPI_Win_copy_attr_function *)1)
#define MPI_T_PVAR_ALL_HANDLES ((MPI_T_pvar_handle)1)
